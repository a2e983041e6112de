/* SPDX-License-Identifier: MIT
 *
 * The options of a program. One table gives the command line, --help, the keys of the configuration
 * file, the environment variables, and the checks of all values; tests/docs compares it with the
 * manual page and the completion. getopt_long takes the command line apart, so this is not
 * reentrant.
 */
#ifndef CC_OPTIONS_H
#define CC_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CC_OPTIONS_MAX      64u  /* rows of a table */
#define CC_OPTIONS_SENTENCE 512u /* bytes of a complaint */
#define CC_OPTIONS_VALUE    128u /* bytes of a value in a complaint */
#define CC_OPTIONS_BYTES    (UINT64_MAX >> 1)

/* What a value is, and the type of its field. Numbers fit any unsigned field or bool. */
enum cc_opt_kind {
	CC_OPT_FLAG,    /* takes no value; bool */
	CC_OPT_COUNT,   /* number */
	CC_OPT_MS,      /* number, of milliseconds */
	CC_OPT_SECONDS, /* number, given in seconds and stored in milliseconds */
	CC_OPT_PORT,    /* number */
	CC_OPT_FD,      /* int; -1 until it is given */
	CC_OPT_BYTES,   /* number, with K, M, G or T */
	CC_OPT_WORD,    /* number: the first word stands for `least`, the next one for the next */
	CC_OPT_NAME,    /* char[] that contains it */
	CC_OPT_PATH,    /* char *, owned: cc_options_clear */
	CC_OPT_SET,     /* what set() does with it */
};

struct cc_opt;

/* Why a value is refused. */
struct cc_opt_refusal {
	char part[CC_OPTIONS_VALUE]; /* of the value, which is at fault; "": all of it */
	const char *why;             /* NULL: because it is not what the option wants */
};

/* Takes the value. NULL: forgets the values so far (a list). base: the struct with the fields. */
typedef bool cc_opt_set_fn(
	void *base, const struct cc_opt *opt, const char *value, struct cc_opt_refusal *ret);

struct cc_opt {
	const char *name; /* "p2p-port": --p2p-port, and p2p_port in the file */
	const char *arg;  /* what --help calls its value; NULL with CC_OPT_FLAG */
	const char *help;
	enum cc_opt_kind kind;
	size_t off, size; /* of its field: CC_OPT_AT */
	struct {
		uint64_t least, most, usual; /* usual: the default */
	} n;                                 /* numbers */
	bool unset;        /* 0 is stored until it is given, and the program puts n.usual in its
			    * place, or more if other values demand that */
	bool key;          /* the configuration file has it, too */
	bool list;         /* several values; those of one source replace those of another one */
	char letter;       /* 'b': -b as well; 0: none */
	const char *was;   /* its old name, which works with one warning; NULL: none */
	const char *env;   /* the environment variable for it; NULL: none */
	const char *usual; /* the default in words; NULL: a number's follows from n, others have
			    * none */
	const char *const *words; /* CC_OPT_WORD; ends with NULL */
	const char *wanted;       /* CC_OPT_SET: what a value has to be */
	cc_opt_set_fn *set;       /* CC_OPT_SET */
};

#define CC_OPT_AT(type, field) .off = offsetof(type, field), .size = sizeof(((type *)0)->field)

struct cc_options {
	const char *program;
	const char *about;   /* of --help, before the options */
	const char *section; /* of the file; NULL: there is no file */
	bool words;          /* the command line has other words than options */
	const struct cc_opt *opt;
	unsigned n;
};

/* Options that are being read, in this order: the command line; the file; the environment; the
 * command line again, which wins. */
struct cc_options_run {
	const struct cc_options *options;
	void *base;
	/* level: CC_LOG_ERR or CC_LOG_WARNING. */
	void (*say)(void *arg, int level, const char *sentence);
	void *arg;
	unsigned source;                /* the one that is being read, counted */
	unsigned from[CC_OPTIONS_MAX];  /* the last one that an option was given by; 0: none */
	bool commanded[CC_OPTIONS_MAX]; /* the command line has it */
	bool warned[CC_OPTIONS_MAX];
};

/* Stores the defaults of numbers. Everything else in base is left alone. */
void cc_options_defaults(const struct cc_options *o, void *base);

enum cc_options_todo { CC_OPTIONS_GO_ON, CC_OPTIONS_HELP, CC_OPTIONS_VERSION };

/* 0, and *ret_first is the index of the first word that is no option; or CC_ERR_INVAL, after a
 * complaint. What comes after --help or --version is not read. */
int cc_options_command_line(struct cc_options_run *r, int argc, char **argv,
	enum cc_options_todo *ret_todo, int *ret_first);
/* Before cc_options_key, for all of the file. */
void cc_options_file(struct cc_options_run *r);
/* where: "FILE, line N", for complaints. 0 or CC_ERR_INVAL. */
int cc_options_key(struct cc_options_run *r, const char *key, const char *value, const char *where);
/* Variables of options that the command line has are not read. 0 or CC_ERR_INVAL. */
int cc_options_environment(struct cc_options_run *r);
bool cc_options_given(const struct cc_options_run *r, const char *name);

/* Prints --help or --version, as todo says. 0, or an exit status. */
int cc_options_print(const struct cc_options *o, enum cc_options_todo todo, FILE *f);
/* Frees paths. */
void cc_options_clear(const struct cc_options *o, void *base);

/* The default as --help shows it; "": none. */
const char *cc_opt_usual(const struct cc_opt *o, char buf[CC_OPTIONS_VALUE]);
/* What a value has to be: "a port from 0 to 65535". */
const char *cc_opt_wanted(const struct cc_opt *o, char buf[CC_OPTIONS_SENTENCE]);

/* A decimal number, nothing around it. */
bool cc_opt_number(const char *text, uint64_t least, uint64_t most, uint64_t *ret);
/* The same with K, M, G or T, powers of 1024. */
bool cc_opt_bytes(const char *text, uint64_t least, uint64_t most, uint64_t *ret);

#endif
