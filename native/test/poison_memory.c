// Preloaded into a process, it fills memory that is allocated and not cleared with ones: as floats, NaN. What is
// computed from memory that nobody has written becomes NaN each time, and not once in a few hundred runs.
#include <errno.h>
#include <stddef.h>
#include <string.h>

// glibc's own functions, under the names that do not change.
extern void * __libc_malloc(size_t size);
extern void * __libc_memalign(size_t alignment, size_t size);

static void * poison(void * memory, size_t size) {
    if (memory) memset(memory, 0xff, size);
    return memory;
}

void * malloc(size_t size) { return poison(__libc_malloc(size), size); }

void * memalign(size_t alignment, size_t size) { return poison(__libc_memalign(alignment, size), size); }

void * aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void ** memory, size_t alignment, size_t size) {
    void * const found = memalign(alignment, size);
    if (!found) return ENOMEM;
    *memory = found;
    return 0;
}
