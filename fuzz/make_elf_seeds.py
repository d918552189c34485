"""Writes the seeds of `symbolize_file`: small ELF files with each form of debug information.

Needs cc, objcopy and xz. Run it from any folder. The seeds are checked in; a new build may differ in some bytes.
"""

import pathlib
import shutil
import subprocess
import tempfile

SEEDS = pathlib.Path(__file__).parent.resolve() / "seeds" / "symbolize_file"
SOURCE = """
static inline __attribute__((always_inline)) int inner(int v) { return v * 3 ^ 5; }
static inline __attribute__((always_inline)) int middle(int v) { return inner(v) + inner(v + 1); }
static __attribute__((noinline, used)) int hidden(int v) { return middle(v) - 7; }
int outer(int v) { return hidden(v) + middle(v * 2); }
int _ZN5space6outer2ILi3EEEii(int v) { return outer(v) + 1; }
"""
FLAGS = ["-O2", "-nostdlib", "-shared", "-fPIC", "-fcf-protection=none", "-fno-ident"]
# Without padding to pages the files are small, so that more of the fuzzer's mutations have an effect.
FLAGS += [f"-Wl,{option}" for option in ("--build-id", "-z,noseparate-code", "-z,max-page-size=16", "-z,norelro")]
LARGEST = 8192


def write_forms(folder):
    def run(*command):
        subprocess.run(command, cwd=folder, check=True)

    def compiled(name, *flags):
        run("cc", *FLAGS, f"-fdebug-prefix-map={folder}=/src", *flags, "s.c", "-o", name)
        return name

    def copied(name, original, *flags):
        run("objcopy", *flags, original, name)
        return name

    (folder / "s.c").write_text(SOURCE)
    for version in (2, 4, 5):
        yield compiled(f"dwarf{version}", f"-gdwarf-{version}")
    yield compiled("split", "-gdwarf-5", "-gsplit-dwarf")
    yield copied("zlib", "dwarf5", "--compress-debug-sections=zlib")
    yield copied("zstd", "dwarf5", "--compress-debug-sections=zstd")
    yield copied("symtab", "dwarf5", "--strip-debug")
    yield copied("dynsym", "dwarf5", "--strip-all")
    copied("mini", "symtab", "--only-keep-debug")
    run("objcopy", "--strip-all", "--keep-symbol=hidden", "mini")
    run("xz", "--force", "mini")
    yield copied("mini_debug_info", "dynsym", "--add-section=.gnu_debugdata=mini.xz")
    yield copied("s.debug", "dwarf5", "--only-keep-debug")
    yield copied("debug_link", "dynsym", "--add-gnu-debuglink=s.debug")


def main():
    SEEDS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for form in write_forms(folder):
            size = (folder / form).stat().st_size
            if size > LARGEST:
                raise SystemExit(f"{form} has {size} bytes")
            shutil.copyfile(folder / form, SEEDS / form)


if __name__ == "__main__":
    main()
