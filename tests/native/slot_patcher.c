/* A profiler that replaces the slots of malloc, calloc, realloc and free in every loaded module, as memray does: start() overwrites
   any content of a slot, and stop() stores the C library's function. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long calls;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

static void *patched_malloc(size_t size) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return real_malloc(size);
}
static void *patched_calloc(size_t count, size_t size) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return real_calloc(count, size);
}
static void *patched_realloc(void *block, size_t size) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return real_realloc(block, size);
}
static void patched_free(void *block) { real_free(block); }

struct function {
  const char *name;
  void *patched;
  void **real;
};

static struct function functions[] = {
    {"malloc", (void *)patched_malloc, (void **)&real_malloc},
    {"calloc", (void *)patched_calloc, (void **)&real_calloc},
    {"realloc", (void *)patched_realloc, (void **)&real_realloc},
    {"free", (void *)patched_free, (void **)&real_free},
};

static void write_slot(void **slot, void *value) {
  uintptr_t page = (uintptr_t)slot & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
  mprotect((void *)page, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
  *slot = value;
}

static void patch_table(ElfW(Addr) base, const ElfW(Rela) * table, size_t bytes, const ElfW(Sym) * symbols, const char *strings,
                        int restores) {
  for (size_t at = 0; at < bytes / sizeof *table; at++) {
    const char *name = strings + symbols[ELF64_R_SYM(table[at].r_info)].st_name;
    for (size_t each = 0; each < sizeof functions / sizeof *functions; each++) {
      if (strcmp(name, functions[each].name) == 0) {
        write_slot((void **)(base + table[at].r_offset), restores ? *functions[each].real : functions[each].patched);
      }
    }
  }
}

static int patch_module(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  /* Skip the C library, the loader, the vdso, and this library itself. */
  const char *path = info->dlpi_name;
  if (strstr(path, "libc.so") || strstr(path, "ld-linux") || strstr(path, "linux-vdso") || strstr(path, "slot_patcher")) {
    return 0;
  }
  const ElfW(Dyn) *dynamic = NULL;
  for (int at = 0; at < info->dlpi_phnum; at++) {
    if (info->dlpi_phdr[at].p_type == PT_DYNAMIC) {
      dynamic = (const ElfW(Dyn) *)(info->dlpi_addr + info->dlpi_phdr[at].p_vaddr);
    }
  }
  if (dynamic == NULL) {
    return 0;
  }
  const ElfW(Rela) *tables[2] = {NULL, NULL};
  size_t sizes[2] = {0, 0};
  const ElfW(Sym) *symbols = NULL;
  const char *strings = NULL;
  for (; dynamic->d_tag != DT_NULL; dynamic++) {
    switch (dynamic->d_tag) {
    case DT_JMPREL: tables[0] = (const void *)dynamic->d_un.d_ptr; break;
    case DT_PLTRELSZ: sizes[0] = dynamic->d_un.d_val; break;
    case DT_RELA: tables[1] = (const void *)dynamic->d_un.d_ptr; break;
    case DT_RELASZ: sizes[1] = dynamic->d_un.d_val; break;
    case DT_SYMTAB: symbols = (const void *)dynamic->d_un.d_ptr; break;
    case DT_STRTAB: strings = (const void *)dynamic->d_un.d_ptr; break;
    default: break;
    }
  }
  for (int table = 0; table < 2; table++) {
    if (tables[table] != NULL && symbols != NULL && strings != NULL) {
      patch_table(info->dlpi_addr, tables[table], sizes[table], symbols, strings, *(int *)data);
    }
  }
  return 0;
}

static void patch_all(int restores) {
  /* In a program that is not position-independent, these functions have an address in the program, which calls through its slot. */
  void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  for (size_t each = 0; each < sizeof functions / sizeof *functions; each++) {
    *functions[each].real = dlsym(library, functions[each].name);
  }
  dl_iterate_phdr(patch_module, &restores);
}

void start(void) { patch_all(0); }
void stop(void) { patch_all(1); }
unsigned long counted(void) { return calls; }
