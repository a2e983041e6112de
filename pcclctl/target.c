/* SPDX-License-Identifier: MIT */
#include "pcclctl/target.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>

#include "common/cc_err.h"
#include "common/cc_sys.h"

#define FOLDERS      2
#define MASTERS      PCCL_RUNDIR "/master-admin.sock"
#define NAME_BEGINS  "master-"
#define NAME_ENDS    "-admin.sock"
#define NAME_PATTERN NAME_BEGINS "PORT" NAME_ENDS

int ctl_target_set(struct ctl_target *t, const char *what, const char *path)
{
	if (strlen(path) >= CTL_PATH_SIZE || !*path)
		return CC_ERR_INVAL;
	*t = (struct ctl_target){.what = what, .n = 1};
	memcpy(t->paths[0], path, strlen(path) + 1);
	return 0;
}

/* Lists the folders in which daemons of this user have their sockets. Returns how many they are. */
static unsigned user_folders(char dirs[FOLDERS][CTL_PATH_SIZE])
{
	const char *run = secure_getenv("XDG_RUNTIME_DIR"), *tmp = secure_getenv("TMPDIR");
	unsigned n = 0;

	if (run && run[0] == '/' &&
		snprintf(dirs[n], CTL_PATH_SIZE, "%s/pccl", run) < CTL_PATH_SIZE)
		n++;
	if (snprintf(dirs[n], CTL_PATH_SIZE, "%s/pccl-%u", tmp && tmp[0] == '/' ? tmp : "/tmp",
		    (unsigned)geteuid()) < CTL_PATH_SIZE)
		n++;
	return n;
}

/* Returns whether only this user could have created a socket in this folder. */
static bool is_own(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

void ctl_target_agent(struct ctl_target *t)
{
	char dirs[FOLDERS][CTL_PATH_SIZE];
	unsigned n_dirs = user_folders(dirs);

	(void)ctl_target_set(t, "agent", PCCL_RUNDIR "/agent-admin.sock");
	for (unsigned i = 0; i < n_dirs; i++) {
		int n = snprintf(t->paths[t->n], CTL_PATH_SIZE, "%s/agent-admin.sock", dirs[i]);

		if (is_own(dirs[i]) && n > 0 && n < CTL_PATH_SIZE)
			t->n++;
	}
}

/* ---- the master ---- */

#define SEEN_MAX 64u /* sockets that are remembered, so that none of them counts twice */

struct found {
	unsigned n;
	char path[CTL_PATH_SIZE];
	char all[512]; /* as many names as fit */
};

struct search {
	struct found live;   /* a master listens */
	struct found closed; /* a master may listen, but this user may not ask it */
	unsigned n_seen;
	struct {
		dev_t dev;
		ino_t ino;
	} seen[SEEN_MAX];
};

static bool is_new(struct search *s, const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES;
	for (unsigned i = 0; i < s->n_seen; i++)
		if (s->seen[i].dev == st.st_dev && s->seen[i].ino == st.st_ino)
			return false;
	if (s->n_seen < SEEN_MAX) {
		s->seen[s->n_seen].dev = st.st_dev;
		s->seen[s->n_seen++].ino = st.st_ino;
	}
	return true;
}

static void count(struct found *f, const char *path)
{
	size_t len = strlen(f->all);

	memcpy(f->path, path, strlen(path) + 1);
	(void)snprintf(f->all + len, sizeof f->all - len, "%s%s", f->n++ > 0 ? ", " : "", path);
}

static void look_at(struct search *s, const char *path)
{
	int fd;

	if (strlen(path) >= CTL_PATH_SIZE || !is_new(s, path))
		return;
	fd = cc_connect_unix(path, SOCK_STREAM | SOCK_NONBLOCK);
	if (fd >= 0)
		close(fd);
	if (fd >= 0 || errno == EAGAIN)
		count(&s->live, path);
	else if (errno == EACCES || errno == EPERM)
		count(&s->closed, path);
}

static int is_master(const struct dirent *e)
{
	size_t len = strlen(e->d_name), begin = sizeof NAME_BEGINS - 1, end = sizeof NAME_ENDS - 1;

	return len > begin + end && strncmp(e->d_name, NAME_BEGINS, begin) == 0 &&
	       strcmp(e->d_name + len - end, NAME_ENDS) == 0;
}

static void look_in(struct search *s, const char *dir)
{
	struct dirent **names;
	int n = is_own(dir) ? scandir(dir, &names, is_master, alphasort) : -1;

	if (n < 0)
		return;
	for (int i = 0; i < n; i++) {
		char path[CTL_PATH_SIZE];

		if (snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name) < CTL_PATH_SIZE)
			look_at(s, path);
		free(names[i]);
	}
	free((void *)names);
}

int ctl_target_master(struct ctl_target *t, char *why, size_t size)
{
	char dirs[FOLDERS][CTL_PATH_SIZE], tried[512] = MASTERS;
	unsigned n_dirs = user_folders(dirs);
	struct search s = {0};
	const struct found *f;

	look_at(&s, MASTERS);
	for (unsigned i = 0; i < n_dirs; i++) {
		size_t len = strlen(tried);

		look_in(&s, dirs[i]);
		(void)snprintf(tried + len, sizeof tried - len, ", %s/" NAME_PATTERN, dirs[i]);
	}
	f = s.live.n > 0 ? &s.live : &s.closed;
	if (f->n == 1)
		return ctl_target_set(t, "master", f->path);
	if (f->n == 0) {
		(void)snprintf(why, size,
			"no master listens at %s: run this on the master's host as the user who "
			"started the master, or name its admin socket with --master PATH",
			tried);
		return EX_UNAVAILABLE;
	}
	(void)snprintf(why, size,
		"%u masters have sockets on this host (%s): name one with --master PATH", f->n,
		f->all);
	return EX_USAGE;
}
