/* The command's words: numbers and sizes as people write and read them, and file names with what raw files do not say.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support.h"
#include "tools/filespec.h"
#include "tools/number.h"
#include "tools/tool.h"

/* filespec.c reports through these two, which live in the command's main file. */
static char last_error[512];

void tool_error(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
}

void tool_library_error(const zlg_context *context, int status, const char *what) {
  snprintf(last_error, sizeof last_error, "%s: %s: %s", what, zlg_status_name(status), zlg_context_message(context));
}

#define CHECK(what) zlg_check((what), #what, __FILE__, __LINE__)
#define CHECK_TEXT(got, want) check_text((got), (want), __LINE__)

static void check_text(const char *got, const char *want, int line) {
  char text[1200];
  snprintf(text, sizeof text, "got \"%s\", want \"%s\"", got, want);
  zlg_check(strcmp(got, want) == 0, text, __FILE__, line);
}

static int64_t bytes_of(const char *text) {
  int64_t bytes = -1;
  return parse_bytes(text, &bytes) ? bytes : -1;
}

static void sizes_are_read_with_decimal_and_binary_prefixes(void) {
  CHECK(bytes_of("0") == 0);
  CHECK(bytes_of("4096") == 4096);
  CHECK(bytes_of("500M") == 500000000);
  CHECK(bytes_of("500MB") == 500000000);
  CHECK(bytes_of("10k") == 10000);
  CHECK(bytes_of("10K") == 10000);
  CHECK(bytes_of("2Gi") == 2147483648);
  CHECK(bytes_of("2GiB") == 2147483648);
  CHECK(bytes_of("1.5T") == 1500000000000);
  const char *const wrong[] = {"", "M", "-1", "1X", "1Mx", "nan", "inf", "1e30", "5 M", "0x"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    zlg_check(bytes_of(wrong[i]) == -1, wrong[i], __FILE__, __LINE__);
}

static void lists_name_the_item_that_is_no_number(void) {
  size_t count;
  double *list = parse_list("1,2.5,-3e2", &count);
  CHECK(list && count == 3 && list[0] == 1 && list[1] == 2.5 && list[2] == -300);
  free(list);
  CHECK(!parse_list("1,,2", &count) && count == 1);
  CHECK(!parse_list("", &count) && count == 0);
  CHECK(!parse_list("1,2,", &count) && count == 2);
  CHECK(!parse_list("1,2x", &count) && count == 1);
}

static void numbers_are_shown_with_three_digits(void) {
  CHECK_TEXT(show_count(0, "pair").s, "0 pair");
  CHECK_TEXT(show_count(999, "pair").s, "999 pair");
  CHECK_TEXT(show_count(1250, "pair").s, "1.25 kpair");
  CHECK_TEXT(show_count(12.345e9, "pair").s, "12.3 Gpair");
  CHECK_TEXT(show_count(999.96e6, "pair").s, "1.00 Gpair");
  CHECK_TEXT(show_traffic(12e6).s, "12.0 MB");
  CHECK_TEXT(show_traffic(0).s, "0 B");
  CHECK_TEXT(show_bytes(32768).s, "32.0 KiB");
  CHECK_TEXT(show_bytes(500e6).s, "500 MB");
  CHECK_TEXT(show_bytes(1.5 * 1024 * 1024 * 1024).s, "1.50 GiB");
  CHECK_TEXT(show_seconds(0).s, "0 s");
  CHECK_TEXT(show_seconds(82e-6).s, "82.0 us");
  CHECK_TEXT(show_seconds(0.9996).s, "1.00 s");
  CHECK_TEXT(show_seconds(59.97).s, "1 min 00 s");
  CHECK_TEXT(show_seconds(3599.7).s, "1 h 00 min");
  CHECK_TEXT(show_seconds(7620).s, "2 h 07 min");
  CHECK_TEXT(show_seconds(NAN).s, "unknown");
  CHECK_TEXT(show_clock(6.2).s, "0:07");
  CHECK_TEXT(show_clock(3723).s, "1:02:03");
  CHECK_TEXT(show_clock(NAN).s, "--:--");
  CHECK_TEXT(show_percent(0.503).s, "50.3 %");
}

static struct filespec spec;
static char message[256];

static bool input(const char *text) {
  filespec_free(&spec);
  return filespec_parse(&spec, text, false, message, sizeof message);
}

static bool output(const char *text) {
  filespec_free(&spec);
  return filespec_parse(&spec, text, true, message, sizeof message);
}

static void inputs_are_taken_apart_from_the_right(void) {
  CHECK(input("a.npy") && spec.format == FILE_NPY && !strcmp(spec.path, "a.npy"));
  CHECK(input("a:npy") && spec.format == FILE_NPY && !strcmp(spec.path, "a"));
  CHECK(input("/tmp/run:3/a.npy") && spec.format == FILE_NPY && !strcmp(spec.path, "/tmp/run:3/a.npy"));
  CHECK(input("a.raw:f32:1000x3") && spec.format == FILE_RAW && spec.type == ZLG_F32 && spec.rows == 1000 &&
        spec.columns == 3 && !spec.column_major && spec.ld == 0 && spec.offset == 0 && !strcmp(spec.path, "a.raw"));
  CHECK(input("a:b:f64:10x2:col:ld=12:+4Ki") && spec.type == ZLG_F64 && spec.rows == 10 && spec.columns == 2 &&
        spec.column_major && spec.ld == 12 && spec.offset == 4096 && !strcmp(spec.path, "a:b"));
  CHECK(input("a.f32:x3") && spec.type == ZLG_F32 && spec.rows == -1 && spec.columns == 3);
  CHECK(input("a.f32:0x0") && spec.rows == 0 && spec.columns == 0);
}

static void inputs_that_say_too_little_are_refused(void) {
  CHECK(!input("a.dat") && strstr(message, "unknown format"));
  CHECK(!input("a.raw:10x3") && strstr(message, "element type"));
  CHECK(!input("a.raw:f32") && strstr(message, "shape"));
  CHECK(!input("a.npy:10x3") && strstr(message, ".npy"));
  CHECK(!input("a.f32:x3:col") && strstr(message, "row-major"));
  CHECK(!input("a.raw:f16:10x3"));
  CHECK(!input("a.raw:f32:-1x3"));
  CHECK(!input(""));
}

static void outputs_are_known_by_suffix_or_word(void) {
  CHECK(output("y.npy") && spec.format == FILE_NPY && spec.type == 0 && !spec.column_major);
  CHECK(output("y.npy:col") && spec.format == FILE_NPY && spec.column_major && !strcmp(spec.path, "y.npy"));
  CHECK(output("y.f64") && spec.format == FILE_RAW && spec.type == ZLG_F64);
  CHECK(output("y.raw") && spec.format == FILE_RAW && spec.type == 0);
  CHECK(output("y:raw:col") && spec.format == FILE_RAW && spec.column_major && !strcmp(spec.path, "y"));
  CHECK(!output("y") && strstr(message, "unknown format"));
  CHECK(!output("y.raw:10x3") && strstr(message, "shape"));
}

static void rows_of_a_raw_file_come_from_its_size(void) {
  char *path = zlg_test_path("rows.f32");
  FILE *file = fopen(path, "w");
  const float data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  fwrite(data, sizeof data, 1, file);
  fclose(file);
  char text[600];
  zlg_context *context = zlg_test_context();
  zlg_matrix *matrix = NULL;
  zlg_matrix_info info = {.rows = 0};
  snprintf(text, sizeof text, "%s:x3:+8", path);
  CHECK(input(text) && filespec_open(context, &matrix, &spec) == TOOL_OK);
  CHECK(matrix && zlg_matrix_get_info(matrix, &info) == ZLG_OK && info.rows == 2 && info.columns == 3);
  zlg_matrix_release(matrix);
  matrix = NULL;
  snprintf(text, sizeof text, "%s:x3", path);
  CHECK(input(text) && filespec_open(context, &matrix, &spec) == TOOL_FAILED && strstr(last_error, "32 bytes"));
  zlg_context_release(context);
  filespec_free(&spec);
  free(path);
}

static const struct zlg_test_case cases[] = {
    {"sizes_are_read_with_decimal_and_binary_prefixes", sizes_are_read_with_decimal_and_binary_prefixes},
    {"lists_name_the_item_that_is_no_number", lists_name_the_item_that_is_no_number},
    {"numbers_are_shown_with_three_digits", numbers_are_shown_with_three_digits},
    {"inputs_are_taken_apart_from_the_right", inputs_are_taken_apart_from_the_right},
    {"inputs_that_say_too_little_are_refused", inputs_that_say_too_little_are_refused},
    {"outputs_are_known_by_suffix_or_word", outputs_are_known_by_suffix_or_word},
    {"rows_of_a_raw_file_come_from_its_size", rows_of_a_raw_file_come_from_its_size},
    {NULL, NULL}};

int main(int argc, char **argv) {
  return zlg_test_main(argc, argv, cases);
}
