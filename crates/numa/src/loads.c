/*
 * A plugin for QEMU: which processor's loads went to which part of the machine's memory?
 *
 * Every load that the machine's programs execute is counted by its virtual page, by the processor
 * that executed it, and by the chunk of physical memory that answered. Only instructions below
 * 1 GiB are looked at: there lie the programs, which are linked to fixed addresses. The kernel lies
 * far above and runs at full speed.
 *
 * Arguments: out=FILE, chunk=BYTES, per_node=PROCESSORS. When the machine is switched off, FILE
 * gets a line `PAGE CHUNK LOADS…`, the loads by the node of the processor, for every page.
 *
 * One thread emulates all processors (`-accel tcg,thread=single`), so nothing here is locked.
 * What of QEMU's interface is used is declared below. It has been the same since its first version.
 */

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
/* QEMU_PLUGIN_MEM_RW: QEMU 7.2 that is asked for loads alone reports stores instead. */
#define LOADS_AND_STORES 3
#define NO_REGISTERS 0 /* QEMU_PLUGIN_CB_NO_REGS */

struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
typedef void (*block_callback)(uint64_t id, struct qemu_plugin_tb *block);
typedef void (*access_callback)(unsigned int vcpu, uint32_t info, uint64_t address, void *data);
typedef void (*exit_callback)(uint64_t id, void *data);

void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, block_callback callback);
void qemu_plugin_register_atexit_cb(uint64_t id, exit_callback callback, void *data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *insn, access_callback callback, int flags,
                                      int kinds, void *data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(uint32_t info, uint64_t address);
bool qemu_plugin_mem_is_store(uint32_t info);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *hardware);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *hardware);

/* Given by the compiler's -D: the oldest interface that the installed QEMU still takes. */
EXPORT int qemu_plugin_version = API_VERSION;

#define PROGRAMS_END (UINT64_C(1) << 30)
#define PAGE_BITS 12
#define NODES 16

struct entry {
    uint64_t page; /* 0 is no page of any program */
    uint64_t chunk;
    uint64_t loads[NODES];
};

static struct entry *table;
static size_t room = 1 << 16, used;
static const char *out;
static uint64_t chunk_bytes = 1, per_node = 1;

static size_t slot(const struct entry *in, size_t of, uint64_t page, uint64_t chunk)
{
    uint64_t hash = (page * 31 + chunk) * UINT64_C(0x9e3779b97f4a7c15);
    size_t at = (hash >> 20) & (of - 1);
    while (in[at].page && (in[at].page != page || in[at].chunk != chunk)) {
        at = (at + 1) & (of - 1);
    }
    return at;
}

static void grow(void)
{
    struct entry *larger = calloc(room * 2, sizeof *larger);
    if (!larger) {
        abort();
    }
    for (size_t at = 0; at < room; at++) {
        if (table[at].page) {
            larger[slot(larger, room * 2, table[at].page, table[at].chunk)] = table[at];
        }
    }
    free(table);
    table = larger;
    room *= 2;
}

static void accessed(unsigned int vcpu, uint32_t info, uint64_t address, void *data)
{
    if (qemu_plugin_mem_is_store(info)) {
        return;
    }
    struct qemu_plugin_hwaddr *hardware = qemu_plugin_get_hwaddr(info, address);
    if (!hardware || qemu_plugin_hwaddr_is_io(hardware)) {
        return;
    }
    uint64_t chunk = qemu_plugin_hwaddr_phys_addr(hardware) / chunk_bytes;
    struct entry *entry = &table[slot(table, room, address >> PAGE_BITS, chunk)];
    if (!entry->page) {
        entry->page = address >> PAGE_BITS;
        entry->chunk = chunk;
        used++;
    }
    uint64_t node = vcpu / per_node;
    entry->loads[node < NODES ? node : NODES - 1]++;
    if (used * 2 > room) {
        grow();
    }
}

static void translated(uint64_t id, struct qemu_plugin_tb *block)
{
    size_t count = qemu_plugin_tb_n_insns(block);
    for (size_t index = 0; index < count; index++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(block, index);
        if (qemu_plugin_insn_vaddr(insn) < PROGRAMS_END) {
            qemu_plugin_register_vcpu_mem_cb(insn, accessed, NO_REGISTERS, LOADS_AND_STORES, NULL);
        }
    }
}

static void switched_off(uint64_t id, void *data)
{
    FILE *file = fopen(out, "w");
    if (!file) {
        return;
    }
    for (size_t at = 0; at < room; at++) {
        if (!table[at].page) {
            continue;
        }
        fprintf(file, "%" PRIu64 " %" PRIu64, table[at].page, table[at].chunk);
        for (int node = 0; node < NODES; node++) {
            fprintf(file, " %" PRIu64, table[at].loads[node]);
        }
        fputc('\n', file);
    }
    /* A reader must be able to tell a whole file from a cut one. */
    fputs("end\n", file);
    fclose(file);
}

static const char *value(const char *argument, const char *name)
{
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 ? argument + length : NULL;
}

EXPORT int qemu_plugin_install(uint64_t id, const void *machine, int count, char **arguments)
{
    for (int index = 0; index < count; index++) {
        const char *found;
        if ((found = value(arguments[index], "out="))) {
            out = strdup(found);
        } else if ((found = value(arguments[index], "chunk="))) {
            chunk_bytes = strtoull(found, NULL, 10);
        } else if ((found = value(arguments[index], "per_node="))) {
            per_node = strtoull(found, NULL, 10);
        }
    }
    table = calloc(room, sizeof *table);
    if (!out || !chunk_bytes || !per_node || !table) {
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, switched_off, NULL);
    return 0;
}
