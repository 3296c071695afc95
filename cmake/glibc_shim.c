/* Functions that glibc 2.38 added and that archives built against it call. Linked only where the
   C library lacks them (see TwpDependencies.cmake), so that such archives work on an older system.

   The __isoc23_ names are what C23's strtol family is called inside glibc; they differ from the
   old ones only in taking "0b101" as binary, which no caller here relies on. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

long __isoc23_strtol(const char *text, char **end, int base);
long long __isoc23_strtoll(const char *text, char **end, int base);
unsigned long __isoc23_strtoul(const char *text, char **end, int base);
int __isoc23_sscanf(const char *text, const char *format, ...);
size_t strlcpy(char *to, const char *from, size_t size);

long __isoc23_strtol(const char *text, char **end, int base) { return strtol(text, end, base); }

long long __isoc23_strtoll(const char *text, char **end, int base) { return strtoll(text, end, base); }

unsigned long __isoc23_strtoul(const char *text, char **end, int base) { return strtoul(text, end, base); }

int __isoc23_sscanf(const char *text, const char *format, ...) {
  va_list args;
  va_start(args, format);
  const int n = vsscanf(text, format, args);
  va_end(args);
  return n;
}

size_t strlcpy(char *to, const char *from, size_t size) {
  const size_t length = strlen(from);
  if (size != 0) {
    const size_t n = length < size ? length : size - 1;
    memcpy(to, from, n);
    to[n] = '\0';
  }
  return length;
}
