/* SPDX-License-Identifier: MIT
 *
 * The master's core: the end of a run, and the next run, which begins at revision 0.
 */
#include "tests/common/testlib.h"
#include "tests/master/fake.h"
#include "tests/master/suites.h"

static const struct ccm_config first = {
	.run = {{1}}, .run_key = {{2}}, .segment_max = 4096, .journal = true};
static const struct ccm_config next = {
	.run = {{8}}, .run_key = {{9}}, .segment_max = 4096, .journal = true};

static struct fk f;
static struct fk_host *h[3]; /* a and b have peers of group 0, c has one of group 1 */
static struct fk_peer p[3];

/* Lets p[0] and p[1] synchronize to this revision without other peers. */
static void synchronize(uint64_t revision)
{
	uint64_t seq;

	fk_sync(&p[0], fk_candidate(revision, 1));
	fk_sync(&p[1], fk_candidate(revision, 1));
	seq = fk_status(&f).last_seq;
	fk_report(h[0], seq, true);
	fk_report(h[1], seq, true);
	ck_assert_uint_eq(fk_revision(h[0], 0), revision + 1);
}

static void setup(void)
{
	size_t i;

	fk_init(&f, &first);
	h[0] = fk_host(&f, "a", "10.0.0.1");
	h[1] = fk_host(&f, "b", "10.0.0.2");
	h[2] = fk_host(&f, "c", "10.0.0.3");
	for (i = 0; i < 3; i++)
		p[i] = fk_join(h[i], i == 2);
	fk_topo(&p[0]);
	synchronize(13);
	fk_forget(&f);
}

static void teardown(void)
{
	fk_free(&f);
}

/* Admits a new member of the group. Returns the revision that the group expects, or 0 if the
 * group accepts any revision. */
static uint64_t expected(uint32_t group)
{
	struct fk_host *x = fk_host(&f, "x", "10.0.0.9");
	struct fk_peer y = fk_join(x, group);
	size_t i;

	if (!fk_count(x, WM_COMMIT)) /* other members are left */
		for (i = 0; i < 3; i++)
			if (fk_present(&p[i]))
				fk_topo(&p[i]);
	fk_settle(&f);
	ck_assert_int_eq(fk_info(&y).phase, CCM_PEER_ACCEPTED);
	return fk_revision(x, group);
}

static void leave_all(void)
{
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
}

static void come_back(size_t i)
{
	h[i] = fk_reconnect_as(h[i], 1, false);
	p[i] = fk_join_again(&p[i], h[i], WM_JOIN_ACCEPTED);
}

START_TEST(a_run_is_over_when_all_have_left)
{
	leave_all();
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

START_TEST(run_is_over_in_the_journal_too)
{
	leave_all();
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

/* c's agent has had peers of the group. It was not told of the end, because none of its peers was
 * in the group then. */
START_TEST(journal_overrides_the_revision_of_an_agent)
{
	struct wm_group_view own = {.group = 0, .world_size = 2, .revision = 14};
	struct wm_msg msg = {.type = WM_RESUME};

	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	come_back(2);
	msg.u.resume.view = (struct wm_view){.global = 3, .view_id = 1, .n = 1, .own = &own};
	fk_send(h[2], &msg);
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

/* Members of another group remain. */
START_TEST(group_is_over_when_its_members_have_left)
{
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_leave(&p[1], WM_LEAVE_CLEAN);
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

static const enum wm_leave_kind hard[] = {WM_LEAVE_DIED, WM_LEAVE_STOPPED};

START_TEST(run_is_not_over_after_the_loss_of_a_member)
{
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_leave(&p[1], hard[_i]);
	fk_leave(&p[2], WM_LEAVE_CLEAN);
	ck_assert_uint_eq(expected(0), 14);
}
END_TEST

/* The others may have left because of the loss. */
START_TEST(run_is_not_over_if_the_others_leave_after_a_loss)
{
	fk_leave(&p[1], WM_LEAVE_DIED);
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	come_back(2);
	fk_resumed(h[2]);
	ck_assert_uint_eq(expected(0), 14);
}
END_TEST

START_TEST(run_is_over_if_members_continued_after_a_loss)
{
	fk_leave(&p[1], WM_LEAVE_DIED);
	p[1] = fk_admit(h[1], 0, (struct fk_peer[]){p[0], p[2]}, 2);
	synchronize(14);
	leave_all();
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

START_TEST(run_is_not_over_if_a_host_vanishes)
{
	fk_leave(&p[0], WM_LEAVE_CLEAN);
	fk_close(h[1], "vanished");
	ck_assert_uint_eq(expected(0), 14);
}
END_TEST

/* The master dies, and its members end before the next master has taken over. */
START_TEST(members_may_leave_during_a_takeover)
{
	size_t i;

	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	for (i = 0; i < 3; i++)
		come_back(i);
	leave_all();
	for (i = 0; i < 3; i++)
		fk_resumed(h[i]);
	fk_tick(&f, 4000);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

static void event(enum ccm_event_type type, const char *text)
{
	struct ccm_event ev = {.type = type, .text = text};

	fk_step(&f, &ev);
}

START_TEST(reset_kicks_all_peers)
{
	const struct wm_kick *k;
	size_t i;

	event(CCM_EV_RESET, "reset");
	for (i = 0; i < 3; i++) {
		ck_assert(!fk_present(&p[i]));
		ck_assert(h[i]->open);
		k = &fk_take(h[i], WM_KICK)->u.kick;
		ck_assert_uint_eq(k->code, WIRE_MASTER_CONNECTION_FAILED);
		ck_assert_str_eq(k->text, "reset");
	}
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	ck_assert(!fk_status(&f).recovering);
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

START_TEST(reset_during_a_takeover_does_not_wait)
{
	fk_restart(&f, &next, f.journal_len);
	fk_tick(&f, 100);
	come_back(0);
	fk_resumed(h[0]);
	event(CCM_EV_RESET, "reset");
	ck_assert(!fk_status(&f).recovering);
	ck_assert(!fk_present(&p[0]));
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
	ck_assert_uint_eq(expected(0), 0);
	come_back(1);
	ck_assert_uint_eq(fk_count(h[1], WM_KICK), 1);
}
END_TEST

START_TEST(reset_does_not_wait_for_a_disconnected_agent)
{
	fk_cut(h[1], "cut");
	event(CCM_EV_RESET, "reset");
	ck_assert_uint_eq(fk_status(&f).accepted, 0);
	ck_assert_uint_eq(expected(0), 0);
}
END_TEST

START_TEST(end_of_the_master_kicks_all_peers)
{
	struct fk_host *d = fk_host(&f, "d", "10.0.0.4");
	struct fk_peer newcomer = fk_join(d, 0);
	size_t i;

	event(CCM_EV_END, "told to end");
	ck_assert(!fk_present(&newcomer));
	for (i = 0; i < 3; i++) {
		ck_assert_str_eq(fk_take(h[i], WM_KICK)->u.kick.text, "told to end");
		ck_assert(!h[i]->open);
	}
	ck_assert_uint_eq(fk_take(d, WM_KICK)->u.kick.code, WIRE_MASTER_CONNECTION_FAILED);
	ck_assert(!d->open);
}
END_TEST

/* Otherwise the agent would keep the run for its peers and look for another master. */
START_TEST(disconnected_agent_learns_of_the_end_on_its_return)
{
	fk_cut(h[1], "cut");
	event(CCM_EV_END, "told to end");
	ck_assert_uint_eq(fk_status(&f).disconnected, 1);
	come_back(1);
	ck_assert_uint_eq(fk_count(h[1], WM_KICK), 0);
	fk_resumed(h[1]);
	ck_assert_str_eq(fk_take(h[1], WM_KICK)->u.kick.text, "told to end");
	ck_assert(!h[1]->open);
	ck_assert_uint_eq(fk_status(&f).disconnected, 0);
}
END_TEST

START_TEST(no_peer_joins_after_the_end)
{
	struct fk_host *x;

	fk_cut(h[1], "cut");
	event(CCM_EV_END, "told to end");
	x = fk_host(&f, "x", "10.0.0.9");
	ck_assert_str_eq(fk_take(x, WM_REFUSE)->u.refuse.text, "told to end");
	ck_assert(!x->open);
}
END_TEST

Suite *over_suite(void)
{
	Suite *s = suite_create("over");
	TCase *tc = tcase_create("over");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_run_is_over_when_all_have_left);
	tcase_add_test(tc, run_is_over_in_the_journal_too);
	tcase_add_test(tc, journal_overrides_the_revision_of_an_agent);
	tcase_add_test(tc, group_is_over_when_its_members_have_left);
	tcase_add_loop_test(tc, run_is_not_over_after_the_loss_of_a_member, 0, 2);
	tcase_add_test(tc, run_is_not_over_if_the_others_leave_after_a_loss);
	tcase_add_test(tc, run_is_over_if_members_continued_after_a_loss);
	tcase_add_test(tc, run_is_not_over_if_a_host_vanishes);
	tcase_add_test(tc, members_may_leave_during_a_takeover);
	tcase_add_test(tc, reset_kicks_all_peers);
	tcase_add_test(tc, reset_during_a_takeover_does_not_wait);
	tcase_add_test(tc, reset_does_not_wait_for_a_disconnected_agent);
	tcase_add_test(tc, end_of_the_master_kicks_all_peers);
	tcase_add_test(tc, disconnected_agent_learns_of_the_end_on_its_return);
	tcase_add_test(tc, no_peer_joins_after_the_end);
	suite_add_tcase(s, tc);
	return s;
}
