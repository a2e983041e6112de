/* SPDX-License-Identifier: MIT */
#include "ccoip-masterd/sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sysexits.h>
#include <unistd.h>
#ifdef HAVE_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

#include "common/cc_err.h"
#include "common/cc_limit.h"
#include "common/cc_log.h"
#include "common/cc_sys.h"

#define DEFAULT_PORT 48148

static int socket_option(int fd, int name)
{
	int v = -1;
	socklen_t len = sizeof v;

	return getsockopt(fd, SOL_SOCKET, name, &v, &len) < 0 ? -1 : v;
}

static bool is_listening_stream(int fd)
{
	return socket_option(fd, SO_TYPE) == SOCK_STREAM && socket_option(fd, SO_ACCEPTCONN) == 1;
}

static bool is_listening_tcp(int fd)
{
	int domain = socket_option(fd, SO_DOMAIN);

	return (domain == AF_INET || domain == AF_INET6) && is_listening_stream(fd);
}

static int add(struct masterd_config *cfg, int fd)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	struct cc_addr bound = {0};
	char text[CC_ADDR_STR_SIZE];

	if (cfg->n_listen == MASTERD_LISTEN_MAX) {
		cc_log(CC_LOG_ERR, "more than %u sockets to listen on", MASTERD_LISTEN_MAX);
		close(fd);
		return EX_USAGE;
	}
	cfg->listen_fds[cfg->n_listen++] = fd;
	if (getsockname(fd, (struct sockaddr *)&ss, &len) < 0 ||
		cc_addr_from_sockaddr((struct sockaddr *)&ss, &bound) < 0) {
		cc_log(CC_LOG_ERR, "descriptor %d: %s", fd, strerror(errno));
		return EX_OSERR;
	}
	cc_log(CC_LOG_NOTICE, "listening on %s", cc_addr_str(&bound, text));
	return 0;
}

/* ---- inherited sockets ---- */

static int take_listen_fd(const struct masterd_options *o, struct masterd_config *cfg)
{
	if (o->listen_fd < 0)
		return 0;
	if (!is_listening_tcp(o->listen_fd)) {
		cc_log(CC_LOG_ERR, "descriptor %d is not a listening TCP socket", o->listen_fd);
		return EX_USAGE;
	}
	fcntl(o->listen_fd, F_SETFD, FD_CLOEXEC);
	return add(cfg, o->listen_fd);
}

#ifdef HAVE_SYSTEMD
static int take_systemd_sockets(struct masterd_config *cfg)
{
	int n = sd_listen_fds(1);

	if (n < 0) {
		cc_log(CC_LOG_ERR, "cannot take the sockets of systemd: %s", strerror(-n));
		return EX_OSERR;
	}
	for (int fd = SD_LISTEN_FDS_START; fd < SD_LISTEN_FDS_START + n; fd++) {
		int code = 0;

		if (is_listening_tcp(fd))
			code = add(cfg, fd);
		else if (cfg->admin_fd < 0 && socket_option(fd, SO_DOMAIN) == AF_UNIX &&
			 is_listening_stream(fd))
			cfg->admin_fd = fd;
		else
			close(fd);
		if (code)
			return code;
	}
	return 0;
}
#else
static int take_systemd_sockets(struct masterd_config *cfg)
{
	(void)cfg;
	return 0;
}
#endif

/* ---- TCP ---- */

static int listen_on(const struct cc_addr *a, struct masterd_config *cfg)
{
	char text[CC_ADDR_STR_SIZE], limit[CC_LIMIT_TEXT];
	struct cc_addr bound = *a;
	int fd = cc_listen_tcp_patiently(&bound, CC_BIND_MS, CC_BIND_MS);

	if (fd >= 0)
		return add(cfg, fd);
	cc_log(CC_LOG_ERR, "cannot listen on %s: %s", cc_addr_str(a, text),
		errno == EADDRNOTAVAIL ? "this host has no such address"
				       : cc_limit_text(errno, limit, sizeof limit));
	return cc_limit_status();
}

/* Listens on the default port. Hosts without IPv6 use IPv4 only. */
static int listen_on_default(struct masterd_config *cfg)
{
	struct cc_addr any = {.family = CC_INET6, .port = DEFAULT_PORT};
	int fd = cc_listen_tcp_patiently(&any, CC_BIND_MS, 0);

	if (fd >= 0)
		return add(cfg, fd);
	if (errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)
		any.family = CC_INET4;
	return listen_on(&any, cfg);
}

/* Is 0.0.0.0:PORT covered by another address? [::]:PORT takes IPv4 as well, so the port would be in
 * use. */
static bool is_part_of_another(const struct masterd_options *o, const struct cc_addr *a)
{
	char text[CC_ADDR_STR_SIZE], other[CC_ADDR_STR_SIZE];

	if (a->family != CC_INET4 || !cc_addr_is_any(a) || a->port == 0)
		return false;
	for (unsigned i = 0; i < o->n_listen; i++) {
		const struct cc_addr *b = &o->listen[i];

		if (b->family != CC_INET6 || !cc_addr_is_any(b) || b->port != a->port)
			continue;
		cc_log(CC_LOG_INFO, "%s is part of %s", cc_addr_str(a, text),
			cc_addr_str(b, other));
		return true;
	}
	return false;
}

static int open_tcp(const struct masterd_options *o, struct masterd_config *cfg)
{
	for (unsigned i = 0; i < o->n_listen; i++) {
		int code = 0;

		if (!is_part_of_another(o, &o->listen[i]))
			code = listen_on(&o->listen[i], cfg);
		if (code)
			return code;
	}
	return cfg->n_listen == 0 ? listen_on_default(cfg) : 0;
}

/* ---- the admin socket ---- */

static void remember(struct socket_file *f, const char *path)
{
	struct stat st;

	if (strlen(path) >= sizeof f->path || lstat(path, &st) < 0)
		return;
	memcpy(f->path, path, strlen(path) + 1);
	f->dev = st.st_dev;
	f->ino = st.st_ino;
}

static const char *why_no_socket(int err, char limit[CC_LIMIT_TEXT])
{
	return err == CC_ERR_EXIST ? "another process listens on it, or it is not a socket"
				   : cc_limit_text(errno, limit, CC_LIMIT_TEXT);
}

static int try_admin(const char *path, unsigned mode, int level, struct masterd_config *cfg,
	struct socket_file *f)
{
	int fd = cc_listen_unix(path, SOCK_STREAM, mode);
	char limit[CC_LIMIT_TEXT];

	if (fd < 0) {
		cc_log(level, "no admin socket %s: %s%s", path, why_no_socket(fd, limit),
			level == CC_LOG_WARNING ? "; set --admin-socket" : "");
		return fd;
	}
	cfg->admin_fd = fd;
	remember(f, path);
	cc_log(CC_LOG_INFO, "pcclctl finds this master at %s", path);
	return 0;
}

static uint16_t first_port(const struct masterd_config *cfg)
{
	struct sockaddr_storage ss;
	socklen_t len = sizeof ss;
	struct cc_addr a;

	if (getsockname(cfg->listen_fds[0], (struct sockaddr *)&ss, &len) < 0 ||
		cc_addr_from_sockaddr((struct sockaddr *)&ss, &a) < 0)
		return 0;
	return a.port;
}

/* Writes the path of the folder of this user's daemons, as libpccl-shim/spawn.c does. After su(1)
 * XDG_RUNTIME_DIR may name another user's folder, so the owner of that folder is checked. Returns
 * false if the path is too long. */
static bool user_folder(char *path, size_t size)
{
	const char *base = secure_getenv("XDG_RUNTIME_DIR"), *tmp = secure_getenv("TMPDIR");
	struct stat st;
	int n;

	if (base && base[0] == '/' && stat(base, &st) == 0 && st.st_uid == geteuid())
		n = snprintf(path, size, "%s/pccl", base);
	else
		n = snprintf(path, size, "%s/pccl-%u", tmp && tmp[0] == '/' ? tmp : "/tmp",
			(unsigned)geteuid());
	return n > 0 && (size_t)n < size;
}

/* Makes the folder if it is missing. Returns false if other users can use it: where all users can
 * write, another user may have made it first. */
static bool is_ours_alone(const char *folder)
{
	struct stat st;

	return (mkdir(folder, 0700) == 0 || errno == EEXIST) && lstat(folder, &st) == 0 &&
	       S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Opens the default admin socket. A master without one can still do its work. A master that belongs
 * to a program does not take the socket of the system's master. */
static void open_default_admin(
	const struct masterd_options *o, struct masterd_config *cfg, struct socket_file *f)
{
	char folder[sizeof f->path], path[sizeof f->path];
	int n;

	if (o->parent_fd < 0 && access(PCCL_RUNDIR, W_OK) == 0 &&
		try_admin(PCCL_RUNDIR "/master-admin.sock", 0660, CC_LOG_INFO, cfg, f) == 0)
		return;
	if (!user_folder(folder, sizeof folder) || !is_ours_alone(folder)) {
		cc_log(CC_LOG_WARNING,
			"no admin socket: %s is not a folder that only this user can use; set "
			"--admin-socket",
			folder);
		return;
	}
	n = snprintf(path, sizeof path, "%s/master-%u-admin.sock", folder, first_port(cfg));
	if (n > 0 && (size_t)n < sizeof path)
		(void)try_admin(path, 0600, CC_LOG_WARNING, cfg, f);
	else
		cc_log(CC_LOG_WARNING, "no admin socket: the name of %s is too long", folder);
}

static int open_admin(
	const struct masterd_options *o, struct masterd_config *cfg, struct socket_file *f)
{
	if (cfg->admin_fd >= 0)
		return 0;
	if (!o->admin_socket)
		open_default_admin(o, cfg, f);
	else if (try_admin(o->admin_socket, 0660, CC_LOG_ERR, cfg, f) < 0)
		return cc_limit_status();
	return 0;
}

/* ---- */

int sockets_open(
	const struct masterd_options *o, struct masterd_config *cfg, struct socket_file *admin)
{
	int code = take_systemd_sockets(cfg);

	if (!code)
		code = take_listen_fd(o, cfg);
	if (!code)
		code = open_tcp(o, cfg);
	if (!code)
		code = open_admin(o, cfg, admin);
	return code;
}

void sockets_remove(const struct socket_file *f)
{
	struct stat st;

	/* Another master may have put its own socket there meanwhile. */
	if (f->path[0] && lstat(f->path, &st) == 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		unlink(f->path);
}
