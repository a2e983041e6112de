/* SPDX-License-Identifier: MIT */
#include "libpccl-shim/torn.h"

#include <stdatomic.h>
#include <stddef.h>

/* 64 bits of each digest, or 0. There is no lock, because a fork could leave it locked. */
static _Atomic uint64_t kept[PCCL_TORN_MAX];
static atomic_uint n_kept;

static uint64_t value_of(const uint64_t content[2])
{
	return content[0] ? content[0] : 1;
}

static _Atomic uint64_t *find(uint64_t value)
{
	for (unsigned i = 0; i < PCCL_TORN_MAX; i++)
		if (atomic_load(&kept[i]) == value)
			return &kept[i];
	return NULL;
}

bool pccl_torn_known(const uint64_t content[2])
{
	return find(value_of(content));
}

void pccl_torn_keep(const uint64_t content[2])
{
	if (!pccl_torn_known(content))
		atomic_store(
			&kept[atomic_fetch_add(&n_kept, 1) % PCCL_TORN_MAX], value_of(content));
}

void pccl_torn_forget(const uint64_t content[2])
{
	uint64_t value = value_of(content);
	_Atomic uint64_t *at = find(value);

	if (at)
		atomic_compare_exchange_strong(at, &value, 0);
}
