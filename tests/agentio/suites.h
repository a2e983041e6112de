/* SPDX-License-Identifier: MIT */
#ifndef SUITES_H
#define SUITES_H

#include <check.h>

Suite *region_suite(void);
Suite *session_suite(void);
Suite *queue_suite(void);
Suite *hello_suite(void);
Suite *link_suite(void);
Suite *options_suite(void);
Suite *attach_suite(void);
Suite *process_suite(void);
Suite *redial_suite(void);
Suite *stop_suite(void);
Suite *manifest_suite(void);
Suite *sync_suite(void);
Suite *small_suite(void);
Suite *findings_suite(void);
Suite *kept_suite(void);
Suite *place_suite(void);
Suite *narrow_suite(void);

#endif
