/* Makes the wall clock of a process wrong by the nanoseconds that a file has (WRONG_CLOCK_FILE).
   The file is mapped, so a change shows at once. Other clocks, and sleeping, are left alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND_NS 1000000000LL

static const volatile int64_t *ahead_ns;
static int (*real_clock_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    real_clock_gettime = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *path = getenv("WRONG_CLOCK_FILE");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        ahead_ns = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *found) {
    if (real_clock_gettime == NULL) /* Another constructor asks before ours has run. */
        begin();
    int result = real_clock_gettime(clock, found);
    if (result != 0 || ahead_ns == NULL)
        return result;
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return result;
    int64_t now_ns = found->tv_sec * SECOND_NS + found->tv_nsec + *ahead_ns;
    found->tv_sec = now_ns / SECOND_NS;
    found->tv_nsec = now_ns % SECOND_NS;
    return 0;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    found->tv_sec = now.tv_sec;
    found->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *found) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (found != NULL)
        *found = now.tv_sec;
    return now.tv_sec;
}
