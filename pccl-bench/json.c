/* SPDX-License-Identifier: MIT */
#include <json-c/json.h>
#include <math.h>

#include "pccl-bench/fields.h"
#include "pccl-bench/modes.h"
#include "pccl-bench/result.h"

static bool add_options(struct json_object *root, const struct bch_result *r)
{
	const struct bch_options *o = r->options;
	struct json_object *j = json_object_new_object();

	return j && bch_add(root, "options", j) && bch_add_number(j, "peers", o->peers) &&
	       bch_add_number(j, "world", o->world_size) && bch_add_number(j, "hosts", o->hosts) &&
	       bch_add_text(j, "hosts_kind", r->hosts) &&
	       bch_add_text(j, "memory", bch_memories[o->memory]) &&
	       bch_add_flag(j, "in_place", o->in_place) &&
	       bch_add_flag(j, "disposable", o->disposable) &&
	       bch_add_number(j, "streams", o->streams) &&
	       bch_add_text(j, "algorithm", bch_algorithms[o->algorithm]) &&
	       bch_add_text(j, "quantize", bch_mode_names[o->quantize]) &&
	       bch_add_number(j, "async", o->async) &&
	       bch_add_number(j, "iterations", o->iterations) &&
	       bch_add_number(j, "warm_ups", o->warm_ups) && bch_add_flag(j, "check", o->check) &&
	       bch_add_flag(j, "optimize", o->optimize) &&
	       bch_add_text(j, "library", o->library ? o->library : "");
}

static bool fill_row(struct json_object *j, const struct bch_options *o, const struct bch_row *row)
{
	return bch_add_flag(j, "optimized", row->optimized) &&
	       bch_add_number(j, "size", row->bytes) && bch_add_number(j, "count", row->count) &&
	       bch_add_text(j, "type", bch_type_names[o->kind.type]) &&
	       bch_add_text(j, "redop", bch_op_names[o->kind.op]) &&
	       bch_add_known(j, "time_median_ns", row->timed, row->times.median) &&
	       bch_add_known(j, "time_min_ns", row->timed, row->times.min) &&
	       bch_add_known(j, "time_p99_ns", row->timed, row->times.p99) &&
	       bch_add_rate(j, "algbw", row->timed, row->algbw) &&
	       bch_add_rate(j, "busbw", row->timed, row->busbw) &&
	       bch_add_number(j, "errors", row->wrong + row->failed) &&
	       bch_add_known(j, "wrong", o->check, row->wrong) &&
	       bch_add_number(j, "failed", row->failed) &&
	       bch_add_rate(j, "l2", row->error > 0 && isfinite(row->error), row->error) &&
	       bch_add_rate(j, "cpu_s_per_gb", true, row->cpu_s_per_gb) &&
	       bch_add_known(j, "agent_rss", row->agent_rss != 0, row->agent_rss) &&
	       bch_add_known(j, "trainer_rss", row->trainer_rss != 0, row->trainer_rss);
}

static bool add_rows(struct json_object *root, const struct bch_result *r)
{
	struct json_object *rows = json_object_new_array();

	if (!rows || !bch_add(root, "rows", rows))
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
	bool ok = root && bch_add_text(root, "program", "pccl-bench") &&
		  bch_add_text(root, "version", PACKAGE_VERSION) &&
		  bch_add_text(root, "benchmark", "allreduce") && add_options(root, r) &&
		  bch_add_known(root, "optimize_ns", r->optimize_ns != 0, r->optimize_ns) &&
		  add_rows(root, r) && bch_add_number(root, "errors", bch_errors(r));

	return bch_print_object(f, root, ok);
}
