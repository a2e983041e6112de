/* SPDX-License-Identifier: MIT */
#include <json-c/json.h>

#include "common/cc_err.h"
#include "pccl-bench/result.h"

/* Adds `v` and takes it over. Returns whether this succeeded. */
static bool add(struct json_object *o, const char *key, struct json_object *v)
{
	if (v && json_object_object_add(o, key, v) == 0)
		return true;
	json_object_put(v);
	return false;
}

static bool add_number(struct json_object *o, const char *key, uint64_t v)
{
	return add(o, key, json_object_new_uint64(v));
}

static bool add_text(struct json_object *o, const char *key, const char *v)
{
	return add(o, key, json_object_new_string(v));
}

static bool add_flag(struct json_object *o, const char *key, bool v)
{
	return add(o, key, json_object_new_boolean(v));
}

/* Adds a number, or null if it is not known. */
static bool add_known(struct json_object *o, const char *key, bool known, uint64_t v)
{
	return known ? add_number(o, key, v) : json_object_object_add(o, key, NULL) == 0;
}

static bool add_rate(struct json_object *o, const char *key, bool known, double v)
{
	return known ? add(o, key, json_object_new_double(v))
		     : json_object_object_add(o, key, NULL) == 0;
}

static bool add_options(struct json_object *root, const struct bch_result *r)
{
	const struct bch_options *o = r->options;
	struct json_object *j = json_object_new_object();

	return j && add(root, "options", j) && add_number(j, "peers", o->peers) &&
	       add_number(j, "world", o->world_size) && add_number(j, "hosts", o->hosts) &&
	       add_text(j, "hosts_kind", r->hosts) &&
	       add_text(j, "memory", o->registered ? "registered" : "staged") &&
	       add_flag(j, "in_place", o->in_place) && add_flag(j, "disposable", o->disposable) &&
	       add_number(j, "streams", o->streams) && add_number(j, "async", o->async) &&
	       add_number(j, "iterations", o->iterations) &&
	       add_number(j, "warm_ups", o->warm_ups) && add_flag(j, "check", o->check) &&
	       add_text(j, "library", o->library ? o->library : "");
}

static bool fill_row(struct json_object *j, const struct bch_options *o, const struct bch_row *row)
{
	return add_number(j, "size", row->bytes) && add_number(j, "count", row->count) &&
	       add_text(j, "type", bch_type_names[o->kind.type]) &&
	       add_text(j, "redop", bch_op_names[o->kind.op]) &&
	       add_known(j, "time_median_ns", row->timed, row->times.median) &&
	       add_known(j, "time_min_ns", row->timed, row->times.min) &&
	       add_known(j, "time_p99_ns", row->timed, row->times.p99) &&
	       add_rate(j, "algbw", row->timed, row->algbw) &&
	       add_rate(j, "busbw", row->timed, row->busbw) &&
	       add_number(j, "errors", row->wrong + row->failed) &&
	       add_known(j, "wrong", o->check, row->wrong) &&
	       add_number(j, "failed", row->failed) &&
	       add_rate(j, "cpu_s_per_gb", true, row->cpu_s_per_gb) &&
	       add_known(j, "agent_rss", row->agent_rss != 0, row->agent_rss) &&
	       add_known(j, "trainer_rss", row->trainer_rss != 0, row->trainer_rss);
}

static bool add_rows(struct json_object *root, const struct bch_result *r)
{
	struct json_object *rows = json_object_new_array();

	if (!rows || !add(root, "rows", rows))
		return false;
	for (uint32_t i = 0; i < r->n_rows; i++) {
		struct json_object *j = json_object_new_object();

		if (!j || !fill_row(j, r->options, &r->rows[i]) ||
			json_object_array_add(rows, j) != 0) {
			json_object_put(j);
			return false;
		}
	}
	return true;
}

int bch_print_json(FILE *f, const struct bch_result *r)
{
	struct json_object *root = json_object_new_object();
	const char *text = NULL;
	bool ok = root && add_text(root, "program", "pccl-bench") &&
		  add_text(root, "version", PACKAGE_VERSION) &&
		  add_text(root, "benchmark", "allreduce") && add_options(root, r) &&
		  add_rows(root, r) && add_number(root, "errors", bch_errors(r));

	if (ok)
		text = json_object_to_json_string_ext(
			root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		fprintf(f, "%s\n", text);
	json_object_put(root);
	return text ? 0 : CC_ERR_NOMEM;
}
