/**
 * JavaScript functions that Python's WebAssembly may call while a program runs: files, clocks and the like, which take
 * and give numbers and bytes. All other imports of Pyodide belong to the bridge to JavaScript, or to networking; they
 * are cut off before the program starts (see python-realm.mjs).
 */
const FILES = `
__syscall_chdir __syscall_chmod __syscall_dup __syscall_dup3 __syscall_faccessat __syscall_fadvise64 __syscall_fallocate
__syscall_fchdir __syscall_fchmod __syscall_fchmodat2 __syscall_fchown32 __syscall_fchownat __syscall_fcntl64
__syscall_fdatasync __syscall_fstat64 __syscall_fstatfs64 __syscall_ftruncate64 __syscall_getcwd __syscall_getdents64
__syscall_ioctl __syscall_lstat64 __syscall_mkdirat __syscall_mknodat __syscall_newfstatat __syscall_openat
__syscall_pipe __syscall_poll __syscall_readlinkat __syscall_renameat __syscall_rmdir __syscall_stat64
__syscall_statfs64 __syscall_symlinkat __syscall_truncate64 __syscall_umask_js __syscall_unlinkat __syscall_utimensat
_mmap_js _msync_js _munmap_js
fd_close fd_fdstat_get fd_pread fd_pwrite fd_read fd_seek fd_sync fd_write`;

const SYSTEM = `
__syscall_getuid32_js environ_get environ_sizes_get _emscripten_get_progname _Py_emscripten_runtime
clock_res_get clock_time_get emscripten_date_now emscripten_get_now
_gmtime_js _localtime_js _mktime_js _timegm_js _tzset_js _setitimer_js
random_get emscripten_get_heap_max emscripten_resize_heap
_PyEM_TrampolineCall_JS _Py_CheckEmscriptenSignals_Helper __call_sighandler
emscripten_runtime_keepalive_pop emscripten_runtime_keepalive_push _emscripten_runtime_keepalive_clear
__assert_fail _abort_js exit proc_exit`;

/** Results of refused calls: error numbers, which Python turns into an OSError, or "there is no such thing". */
const ENOSYS = -52;
const EAI_FAIL = -4;
const REFUSED = [
  [
    ENOSYS,
    `__syscall_accept4 __syscall_bind __syscall_connect __syscall_getpeername __syscall_getsockname
    __syscall_getsockopt __syscall_listen __syscall_recvfrom __syscall_recvmsg __syscall_sendmsg __syscall_sendto
    __syscall_socket _emscripten_system`,
  ],
  [EAI_FAIL, "getaddrinfo getnameinfo"],
  [0, "can_run_sync_js getprotobyname _emscripten_lookup_name _dlopen_js _dlsym_js _try_fcntl64 _try_shutdown"],
  [null, "_maybe_connect_async _maybe_poll_async _maybe_recvfrom_async _maybe_sendto_async"],
];

/** Allowed calls that change state outside of Python's memory: after one the interpreter is not used again. */
const MARKING = "ffi_call_js ffi_closure_alloc_js ffi_closure_free_js ffi_prep_closure_loc_js";

const split = (names) => names.trim().split(/\s+/);

/** The rules as text, since objects of this realm must not get into Python's. */
export const IMPORT_RULES = JSON.stringify({
  allowed: [...split(FILES), ...split(SYSTEM)],
  marking: split(MARKING),
  refused: REFUSED.flatMap(([value, names]) => split(names).map((name) => [name, value])),
});
