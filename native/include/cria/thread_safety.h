// Which lock guards what, for clang's thread-safety analysis (-Wthread-safety; scripts/check-compilers.mjs runs it).
// Other compilers see nothing. The attributes' meaning: https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#ifdef __clang__
#define CRIA_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define CRIA_THREAD_ATTRIBUTE(attribute)
#endif

// Of types: a lock, or a right that only one thread has; an object that holds one while it lives.
#define CRIA_CAPABILITY(name) CRIA_THREAD_ATTRIBUTE(capability(name))
#define CRIA_SCOPED_CAPABILITY CRIA_THREAD_ATTRIBUTE(scoped_lockable)
// Of data: only with these.
#define CRIA_GUARDED_BY(lock) CRIA_THREAD_ATTRIBUTE(guarded_by(lock))
// Of locks: which is taken first.
#define CRIA_ACQUIRED_AFTER(...) CRIA_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
// Of functions: callers hold these, or must not; the function takes them, or gives them back; it returns a lock.
#define CRIA_REQUIRES(...) CRIA_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define CRIA_EXCLUDES(...) CRIA_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define CRIA_ACQUIRE(...) CRIA_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define CRIA_RELEASE(...) CRIA_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define CRIA_RETURN_CAPABILITY(lock) CRIA_THREAD_ATTRIBUTE(lock_returned(lock))
// Of functions whose body the analysis cannot follow; a comment says why.
#define CRIA_UNCHECKED_THREADS CRIA_THREAD_ATTRIBUTE(no_thread_safety_analysis)
