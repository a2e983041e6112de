/* SPDX-License-Identifier: MIT
 *
 * A folder with files as /proc and /sys have them, for code that reads limits below a root.
 */
#ifndef FAKEROOT_H
#define FAKEROOT_H

extern char fake_root[]; /* its path, between setup and teardown of a case */

/* A fixture of check: makes the folder, empty; removes it with all files. */
void fake_root_setup(void);
void fake_root_teardown(void);
/* Writes a file, and the folders above it. path: begins with '/', below the root. */
void fake_root_put(const char *path, const char *text);

#endif
