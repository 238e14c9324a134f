// Calls of the operating system that fail on purpose, loaded before the interpreter (LD_PRELOAD).
//
// Only calls about files below one folder are counted. From the call with a given number on, or at
// that call only, they fail with a given error number, or write half of what they are given.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { READING = 1, WRITING = 2, REMOVING = 4 };
enum { ONCE = 0, LASTING = 1 };
enum { SHORT = -1 }; // in place of an error number: half of the bytes are written

static atomic_long count;
static long first = 0; // 0: nothing fails
static int error_number = 0, lasting = 0;
static char root[PATH_MAX] = "";
static char hit[PATH_MAX + 32] = "";
static char calls[1 << 16] = ""; // a command makes far fewer

long faults_count(void) { return count; }
const char *faults_hit(void) { return hit; }

void faults_arm(const char *folder, long number, int error, int mode) {
    count = 0;
    hit[0] = 0;
    memset(calls, 0, sizeof calls);
    first = number;
    error_number = error;
    lasting = mode;
    snprintf(root, sizeof root, "%s", folder);
}

// The calls so far: 'w' writes bytes, 'W' is another call that a full disk refuses, '.' any other.
const char *faults_calls(void) { return calls; }

static int below(const char *path) {
    return root[0] && path && strncmp(path, root, strlen(root)) == 0;
}

// Standard output and error are files of the folder, but on another disk than the others.
static int stream(const char *path) { return strstr(path, "/stdout") || strstr(path, "/stderr"); }

// Whether this call fails; the name of the first one is kept.
static int fails(const char *name, const char *path, int kind) {
    if (!below(path))
        return 0;
    const long mine = atomic_fetch_add(&count, 1) + 1;
    const int writes = !strcmp(name, "write") || !strcmp(name, "fwrite");
    if (mine < (long)sizeof calls)
        calls[mine - 1] = writes ? 'w' : kind == WRITING ? 'W' : '.';
    if (!first || mine < first || (mine > first && !lasting))
        return 0;
    if (error_number == ENOSPC && kind != WRITING) // a full disk can be read, and emptied
        return 0;
    if (error_number == SHORT && !writes)
        return 0;
    if (stream(path) && hit[0] && !strstr(hit, path))
        return 0;
    if (!hit[0])
        snprintf(hit, sizeof hit, "%s %s", name, path);
    errno = error_number;
    return 1;
}

static const char *path_of(int fd, char *room) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t size = readlink(link, room, PATH_MAX - 1);
    room[size < 0 ? 0 : size] = 0;
    return room;
}

static const char *absolute(const char *path, char *room) {
    if (path[0] == '/' || !getcwd(room, PATH_MAX))
        return path;
    const size_t used = strlen(room);
    snprintf(room + used, PATH_MAX - used, "/%s", path);
    return room;
}

#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

#define OPEN(name)                                                                                 \
    int name(const char *path, int flags, ...) {                                                   \
        char room[PATH_MAX];                                                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;              \
        va_end(rest);                                                                              \
        if (fails("open", absolute(path, room), flags & O_CREAT ? WRITING : READING))              \
            return -1;                                                                             \
        return NEXT(int, name, const char *, int, ...)(path, flags, mode);                         \
    }
OPEN(open)
OPEN(open64)

// Calls about a name within an open folder, as a folder that is removed makes them.
static const char *within(int folder, const char *path, char *room) {
    if (path[0] == '/' || folder == AT_FDCWD)
        return absolute(path, room);
    const size_t used = strlen(path_of(folder, room));
    snprintf(room + used, PATH_MAX - used, "/%s", path);
    return room;
}

#define OPENAT(name)                                                                               \
    int name(int folder, const char *path, int flags, ...) {                                       \
        char room[PATH_MAX];                                                                       \
        va_list rest;                                                                              \
        va_start(rest, flags);                                                                     \
        const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0;              \
        va_end(rest);                                                                              \
        if (fails("open", within(folder, path, room), flags & O_CREAT ? WRITING : READING))        \
            return -1;                                                                             \
        return NEXT(int, name, int, const char *, int, ...)(folder, path, flags, mode);            \
    }
OPENAT(openat)
OPENAT(openat64)

int unlinkat(int folder, const char *path, int flags) {
    char room[PATH_MAX];
    if (fails("unlink", within(folder, path, room), REMOVING))
        return -1;
    return NEXT(int, unlinkat, int, const char *, int)(folder, path, flags);
}

DIR *opendir(const char *path) {
    char room[PATH_MAX];
    if (fails("opendir", absolute(path, room), READING))
        return NULL;
    return NEXT(DIR *, opendir, const char *)(path);
}

#define WITH_PATH(name, kind, parameters, arguments, ...)                                          \
    int name parameters {                                                                          \
        char room[PATH_MAX];                                                                       \
        if (fails(#name, absolute(path, room), kind))                                              \
            return -1;                                                                             \
        return NEXT(int, name, __VA_ARGS__) arguments;                                             \
    }
WITH_PATH(mkdir, WRITING, (const char *path, mode_t mode), (path, mode), const char *, mode_t)
WITH_PATH(chmod, WRITING, (const char *path, mode_t mode), (path, mode), const char *, mode_t)
WITH_PATH(unlink, REMOVING, (const char *path), (path), const char *)
WITH_PATH(rmdir, REMOVING, (const char *path), (path), const char *)
WITH_PATH(rename, WRITING, (const char *path, const char *to), (path, to), const char *,
          const char *)

#define WITH_FILE(name, kind, parameters, arguments, ...)                                          \
    int name parameters {                                                                          \
        char room[PATH_MAX];                                                                       \
        if (fails(#name, path_of(fd, room), kind))                                                 \
            return -1;                                                                             \
        return NEXT(int, name, __VA_ARGS__) arguments;                                             \
    }
WITH_FILE(fsync, WRITING, (int fd), (fd), int)
WITH_FILE(fdatasync, WRITING, (int fd), (fd), int)
WITH_FILE(flock, READING, (int fd, int mode), (fd, mode), int, int)
WITH_FILE(ftruncate, WRITING, (int fd, off_t size), (fd, size), int, off_t)
WITH_FILE(ftruncate64, WRITING, (int fd, off64_t size), (fd, size), int, off64_t)

int close(int fd) { // closes the file even if it fails, as Linux does; reading loses nothing
    char room[PATH_MAX];
    const int written = (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
    const int failed = written && fails("close", path_of(fd, room), WRITING), reason = errno;
    const int status = NEXT(int, close, int)(fd);
    errno = failed ? reason : errno;
    return failed ? -1 : status;
}

ssize_t read(int fd, void *data, size_t size) {
    char room[PATH_MAX];
    if (fails("read", path_of(fd, room), READING))
        return -1;
    return NEXT(ssize_t, read, int, void *, size_t)(fd, data, size);
}

ssize_t write(int fd, const void *data, size_t size) {
    char room[PATH_MAX];
    if (fails("write", path_of(fd, room), WRITING)) {
        if (error_number != SHORT)
            return -1;
        size = (size + 1) / 2;
    }
    return NEXT(ssize_t, write, int, const void *, size_t)(fd, data, size);
}

// Files of the C library, which the compiled search uses for its log.

#define FOPEN(name)                                                                                \
    FILE *name(const char *path, const char *mode) {                                               \
        char room[PATH_MAX];                                                                       \
        if (fails("fopen", absolute(path, room), strpbrk(mode, "wa") ? WRITING : READING))         \
            return NULL;                                                                           \
        return NEXT(FILE *, name, const char *, const char *)(path, mode);                         \
    }
FOPEN(fopen)
FOPEN(fopen64)

size_t fwrite(const void *data, size_t each, size_t number, FILE *file) {
    char room[PATH_MAX];
    if (fails("fwrite", path_of(fileno(file), room), WRITING))
        return 0; // a short write of the C library is a failed one
    return NEXT(size_t, fwrite, const void *, size_t, size_t, FILE *)(data, each, number, file);
}

int fflush(FILE *file) {
    char room[PATH_MAX];
    if (file && fails("fflush", path_of(fileno(file), room), WRITING))
        return EOF;
    return NEXT(int, fflush, FILE *)(file);
}

int fclose(FILE *file) {
    char room[PATH_MAX];
    const int failed = fails("fclose", path_of(fileno(file), room), WRITING), reason = errno;
    const int status = NEXT(int, fclose, FILE *)(file);
    errno = failed ? reason : errno;
    return failed ? EOF : status;
}
