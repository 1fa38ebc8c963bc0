// Annotations for clang's thread-safety analysis (-Wthread-safety; scripts/check-compilers.mjs runs it): they name the
// lock that guards each piece of data. Other compilers ignore them. Their meaning:
// https://clang.llvm.org/docs/ThreadSafetyAnalysis.html
#pragma once

#ifdef __clang__
#define CRIA_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define CRIA_THREAD_ATTRIBUTE(attribute)
#endif

// On types: a lock, or a right that only one thread has; an object that holds one while it lives.
#define CRIA_CAPABILITY(name) CRIA_THREAD_ATTRIBUTE(capability(name))
#define CRIA_SCOPED_CAPABILITY CRIA_THREAD_ATTRIBUTE(scoped_lockable)
// On data: the lock that guards it.
#define CRIA_GUARDED_BY(lock) CRIA_THREAD_ATTRIBUTE(guarded_by(lock))
// On locks: the lock that must be taken before this one.
#define CRIA_ACQUIRED_AFTER(...) CRIA_THREAD_ATTRIBUTE(acquired_after(__VA_ARGS__))
// On functions: locks that callers must hold or must not hold; locks that the function takes or releases; the lock that
// it returns.
#define CRIA_REQUIRES(...) CRIA_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define CRIA_EXCLUDES(...) CRIA_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
#define CRIA_ACQUIRE(...) CRIA_THREAD_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define CRIA_RELEASE(...) CRIA_THREAD_ATTRIBUTE(release_capability(__VA_ARGS__))
#define CRIA_RETURN_CAPABILITY(lock) CRIA_THREAD_ATTRIBUTE(lock_returned(lock))
// On functions whose body the analysis cannot follow; a comment gives the reason.
#define CRIA_UNCHECKED_THREADS CRIA_THREAD_ATTRIBUTE(no_thread_safety_analysis)
