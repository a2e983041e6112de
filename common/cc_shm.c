/* SPDX-License-Identifier: MIT */
#include "common/cc_shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#define NO_WRITES (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)

static int error_of_errno(void)
{
	return errno == ENOMEM || errno == ENOSPC || errno == EFBIG ? CC_ERR_NOMEM : CC_ERR_IO;
}

static _Thread_local const char *failed_call = "";

const char *cc_shm_failed_call(void)
{
	return failed_call;
}

static bool succeeds(bool good, const char *call)
{
	if (!good)
		failed_call = call;
	return good;
}

static int create(const char *name, size_t size, int seals, int *ret_fd, void **ret_map)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole;
	int fd, err, saved;
	void *map;

	if (size == 0 || size > (size_t)INT64_MAX - page)
		return CC_ERR_INVAL;
	whole = (size + page - 1) / page * page;
	fd = cc_fd_above_standard(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
	if (!succeeds(fd >= 0, "memfd_create"))
		return error_of_errno();
	/* With mode 0600 a receiver of another user cannot open the memory again with more rights.
	 */
	if (!succeeds(fchmod(fd, S_IRUSR | S_IWUSR) == 0, "fchmod") ||
		!succeeds(ftruncate(fd, (off_t)whole) == 0, "ftruncate"))
		goto err_close;
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (!succeeds(map != MAP_FAILED, "mmap"))
		goto err_close;
	if (!succeeds(fcntl(fd, F_ADD_SEALS, seals) == 0, "fcntl(F_ADD_SEALS)"))
		goto err_unmap;
	*ret_fd = fd;
	*ret_map = map;
	return 0;

err_unmap:
	saved = errno;
	munmap(map, size);
	errno = saved;
err_close:
	err = error_of_errno();
	saved = errno;
	close(fd);
	errno = saved;
	return err;
}

int cc_shm_create(const char *name, size_t size, int *ret_fd, void **ret_map)
{
	return create(name, size, SEALS, ret_fd, ret_map);
}

static bool has_proc(void)
{
	return access("/proc/self/fd", X_OK) == 0;
}

int cc_shm_create_own(const char *name, size_t size, int *ret_fd, void **ret_map)
{
	return create(
		name, size, has_proc() ? SEALS : SEALS | F_SEAL_FUTURE_WRITE, ret_fd, ret_map);
}

int cc_shm_map(int fd, size_t size, void **ret_map)
{
	struct stat st;
	int seals, mode, prot;
	void *map;

	if (size == 0)
		return CC_ERR_INVAL;
	/* Without the seals the creator could shrink the file, and an access here would cause a
	 * SIGBUS. */
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS)
		return CC_ERR_PERM;
	if (fstat(fd, &st) < 0)
		return CC_ERR_IO;
	if (st.st_size < 0 || (uintmax_t)st.st_size < size)
		return CC_ERR_INVAL;
	mode = fcntl(fd, F_GETFL);
	if (mode < 0)
		return CC_ERR_IO;
	prot = (mode & O_ACCMODE) == O_RDONLY || (seals & NO_WRITES) ? PROT_READ
								     : PROT_READ | PROT_WRITE;
	map = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return error_of_errno();
	*ret_map = map;
	return 0;
}

int cc_shm_adopt(int fd, size_t size, void **ret_map)
{
	struct statfs fs;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS), mode;

	/* The seals are checked first. A descriptor without seals may be any file, and other calls
	 * on it may block. */
	if (seals < 0 || (seals & (SEALS | NO_WRITES)) != SEALS)
		return CC_ERR_PERM;
	mode = fcntl(fd, F_GETFL);
	if (mode < 0 || (mode & O_ACCMODE) != O_RDWR)
		return CC_ERR_PERM;
	/* Huge pages may be missing when they are needed, and an access here would then cause a
	 * SIGBUS. */
	if (fstatfs(fd, &fs) < 0 || fs.f_type != TMPFS_MAGIC)
		return CC_ERR_INVAL;
	if (fstat(fd, &st) < 0 || st.st_size < 0 || (uintmax_t)st.st_size != size)
		return CC_ERR_INVAL;
	return cc_shm_map(fd, size, ret_map);
}

int cc_shm_read_only(int fd)
{
	char path[32];
	int ro;

	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	ro = cc_fd_above_standard(open(path, O_RDONLY | O_CLOEXEC));
	if (ro < 0 && (fcntl(fd, F_GET_SEALS) & NO_WRITES))
		ro = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	/* cppcheck-suppress resourceLeak; the caller owns it */
	return ro < 0 ? CC_ERR_IO : ro;
}

void cc_shm_unmap(void *map, size_t size)
{
	if (map)
		munmap(map, size);
}
