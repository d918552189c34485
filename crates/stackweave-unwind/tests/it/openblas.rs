//! Samples inside `OpenBLAS`, whose kernels base frames on r10 and r13, or have no tables.

use std::ffi::{c_int, c_void};
use std::time::{Duration, Instant};

use stackweave_testkit::library::Library;
use stackweave_testkit::oracles::libgcc;
use stackweave_testkit::signals::{SignalStack, Ticker, with_handlers};
use stackweave_testkit::stack::{Compare, first_unequal};
use stackweave_testkit::stack_checker::StackChecker;
use stackweave_testkit::{child, modules, subject};
use stackweave_unwind::{CodeAddress, StopReason};

const LIBRARY: &str = "libopenblas.so.0";
const LIMIT: usize = 512;
const ENOUGH: usize = 300;
const ORDER: u8 = 160;
const ROW_MAJOR: c_int = 101;
const NO_TRANSPOSE: c_int = 111;

#[rustfmt::skip]
type Gemm<F> = unsafe extern "C" fn(
    c_int, c_int, c_int, c_int, c_int, c_int, F, *const F, c_int, *const F, c_int, F, *mut F, c_int,
);

/// Multiplies once, writes the frames outside this one to `chain`, starts the timer, and continues multiplying.
#[inline(never)]
fn multiply<F: Copy + From<f32>>(
    gemm: Gemm<F>,
    chain: *mut Vec<CodeAddress>,
    start: &dyn Fn() -> Ticker,
    done: &dyn Fn() -> bool,
) {
    let elements = usize::from(ORDER) * usize::from(ORDER);
    let (a, b, mut c) = (vec![F::from(1.5); elements], vec![F::from(0.5); elements], vec![F::from(0.0); elements]);
    let mut once = || {
        let (one, zero, n) = (F::from(1.0), F::from(0.0), c_int::from(ORDER));
        let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
        // SAFETY: three square matrices of this order.
        unsafe { gemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, n, n, n, one, a, n, b, n, zero, c, n) };
    };
    once();
    let mut frames = [CodeAddress::default(); LIMIT];
    let captured = libgcc::capture(&mut frames, &mut [], 1);
    // SAFETY: the vector belongs to the caller and has capacity; no handler reads it yet.
    unsafe { (*chain).extend_from_slice(&frames[..captured.len]) };
    let _ticker = start();
    while !done() {
        once();
    }
}

/// The samples of one run.
#[derive(Debug, Default)]
struct Samples {
    in_openblas: usize,
    compared: usize,
    without_tables: usize,
}

/// Takes samples. Where libgcc can unwind, the stacks must be equal. In assembly kernels without tables, every
/// frame must belong to `OpenBLAS` or this program, or be known.
fn sample<F: Copy + From<f32>>(library: &Library, name: &str, stack: SignalStack) -> Samples {
    let symbol = library.symbol(name);
    // SAFETY: the symbol has that signature in every CBLAS with 32-bit integers.
    let gemm = unsafe { std::mem::transmute::<*mut c_void, Gemm<F>>(symbol) };
    let loaded = modules::loaded();
    let openblas = loaded.iter().find(|module| module.contains(symbol as u64)).expect("it is loaded");
    let program = loaded.first().expect("the program is loaded");
    let mut chain: Vec<CodeAddress> = Vec::with_capacity(LIMIT);
    let chain_at = &raw mut chain;
    let mut checker = StackChecker::new(LIMIT);
    let mut samples = Samples::default();
    let samples_at = &raw mut samples;
    let (mut ours, mut expected) = ([CodeAddress::default(); LIMIT], [CodeAddress::default(); LIMIT]);
    let mut on_tick = |context: *mut c_void| {
        // SAFETY: the context is that of the handler that runs; the chain was written before the timer started.
        let (captured, chain, samples) =
            unsafe { (subject::capture_from_context(context, &mut ours, 0), &*chain_at, &mut *samples_at) };
        let ours = &ours[..captured.len];
        let count = libgcc::capture_interrupted(&mut expected, 0).len;
        let expected = &expected[..count];
        samples.in_openblas += usize::from(ours.first().is_some_and(|frame| openblas.contains(frame.address())));
        if expected.ends_with(chain) {
            let wrong = first_unequal(ours, expected, Compare::AddressesAndKinds);
            let wrong = wrong.or((captured.stop != StopReason::EndOfStack).then_some(ours.len()));
            checker.record_comparison("OpenBLAS", (ours, captured.stop), expected, wrong);
            samples.compared += 1;
        } else {
            let mut rest = chain.iter();
            let root_side = |frame: &CodeAddress| rest.any(|known| known == frame);
            let own = |frame: &CodeAddress| openblas.contains(frame.address()) || program.contains(frame.address());
            let inner = ours.iter().take_while(|frame| own(frame) && !chain.contains(frame)).count();
            let wrong = ours[inner..].iter().position({
                let mut root_side = root_side;
                move |frame| !root_side(frame)
            });
            checker.record_comparison(
                "OpenBLAS without tables",
                (ours, captured.stop),
                expected,
                wrong.map(|at| inner + at),
            );
            samples.without_tables += 1;
        }
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    with_handlers(&[libc::SIGALRM], stack, &mut on_tick, || {
        let start = || Ticker::start(libc::SIGALRM, 300);
        multiply(gemm, chain_at, &start, &|| {
            // SAFETY: only counts are read.
            let seen = unsafe { (*samples_at).compared + (*samples_at).without_tables };
            seen >= ENOUGH || Instant::now() > deadline
        });
    });
    checker.expect_agreement(ENOUGH);
    samples
}

/// Takes samples in a child, with the kernels for one kind of processor.
fn check_kernels(name: &str, processor: Option<&str>) {
    let mut command = child::command(&child::own_executable(), name, "sampled");
    command.env("OPENBLAS_NUM_THREADS", "1");
    if let Some(processor) = processor {
        command.env("OPENBLAS_CORETYPE", processor);
    }
    let output = child::run(&mut command);
    assert!(output.status.success(), "kernels for {processor:?}: {}", child::text(&output));
    for line in String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.contains("Samples")) {
        println!("kernels for {processor:?}: {line}");
    }
}

#[test]
fn samples_inside_openblas_kernels_contain_the_complete_stack() {
    const NAME: &str = "openblas::samples_inside_openblas_kernels_contain_the_complete_stack";
    let Some(library) = Library::open(LIBRARY) else {
        println!("skipped: {LIBRARY} is not installed (Debian package libopenblas0-pthread)");
        return;
    };
    if child::role().is_none() {
        drop(library);
        for processor in [None, Some("Prescott"), Some("Nehalem"), Some("Sandybridge"), Some("Haswell")] {
            check_kernels(NAME, processor);
        }
        return;
    }
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        let double = sample::<f64>(&library, "cblas_dgemm", stack);
        let single = sample::<f32>(&library, "cblas_sgemm", stack);
        println!("dgemm {double:?} sgemm {single:?}");
        assert!(double.in_openblas + single.in_openblas > ENOUGH, "{double:?} {single:?}");
    }
}
