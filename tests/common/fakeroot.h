/* SPDX-License-Identifier: MIT
 *
 * A folder with files like those of /proc and /sys, for code that reads limits below a root.
 */
#ifndef FAKEROOT_H
#define FAKEROOT_H

extern char fake_root[]; /* path of the folder; it is valid between setup and teardown */

/* A fixture for libcheck. The first function makes an empty folder, and the second removes this
 * folder and all files in it. */
void fake_root_setup(void);
void fake_root_teardown(void);
/* Writes a file, and makes the folders above it. `path` begins with '/' and is relative to the
 * root. */
void fake_root_put(const char *path, const char *text);

#endif
