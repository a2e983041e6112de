/* SPDX-License-Identifier: MIT */
#include <json-c/json.h>
#include <math.h>

#include "pccl-bench/fields.h"
#include "pccl-bench/modes.h"
#include "pccl-bench/quant.h"

static bool add_options(struct json_object *root, const struct bch_options *o)
{
	struct json_object *j = json_object_new_object();

	return j && bch_add(root, "options", j) && bch_add_number(j, "count", o->count) &&
	       bch_add_number(j, "seed", o->seed) &&
	       bch_add_text(j, "algorithm", bch_algorithms[o->algorithm]) &&
	       bch_add_text(j, "quantize", bch_mode_names[o->quantize]) &&
	       bch_add_text(j, "gradient", o->gradient ? o->gradient : "");
}

static bool fill_row(struct json_object *j, const struct bch_quant_row *row,
	const struct bch_quant_error *e, const struct bch_quant_speed *speed)
{
	return bch_add_text(j, "data", row->data) &&
	       bch_add_text(j, "mode", bch_mode_names[row->mode]) &&
	       bch_add_number(j, "hosts", e->hosts) &&
	       bch_add_text(j, "algorithm", bch_route_names[e->route]) &&
	       bch_add_number(j, "count", e->count) &&
	       bch_add_rate(j, "bytes_per_element", true, e->bytes) &&
	       bch_add_rate(j, "l2", isfinite(e->l2), e->l2) &&
	       bch_add_rate(j, "vnmse", isfinite(e->vnmse), e->vnmse) &&
	       bch_add_rate(j, "encode", speed->encode > 0, speed->encode) &&
	       bch_add_rate(j, "reduce", speed->reduce > 0, speed->reduce);
}

static bool add_rows(struct json_object *root, const struct bch_quant_result *r)
{
	struct json_object *rows = json_object_new_array();

	if (!rows || !bch_add(root, "rows", rows))
		return false;
	for (uint32_t i = 0; i < r->n_rows * r->n_steps; i++) {
		const struct bch_quant_row *row = &r->rows[i / r->n_steps];
		struct json_object *j = json_object_new_object();

		if (!j || !fill_row(j, row, &row->errors[i % r->n_steps], &r->speeds[row->mode]) ||
			json_object_array_add(rows, j) != 0) {
			json_object_put(j);
			return false;
		}
	}
	return true;
}

int bch_quant_print_json(FILE *f, const struct bch_quant_result *r)
{
	struct json_object *root = json_object_new_object();
	bool ok = root && bch_add_text(root, "program", "pccl-bench") &&
		  bch_add_text(root, "version", PACKAGE_VERSION) &&
		  bch_add_text(root, "benchmark", "quant") && add_options(root, r->options) &&
		  add_rows(root, r);

	return bch_print_object(f, root, ok);
}
