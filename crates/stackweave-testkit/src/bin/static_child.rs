//! A statically linked program: captures in several situations, compares with libgcc, and exits with 0 if all
//! captures agree.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn main() -> Result<(), String> {
    use stackweave_testkit::fixtures::{call_through, sw_recurse, sw_sort, sw_throw_through};
    use stackweave_testkit::oracles::Oracle;
    use stackweave_testkit::signals::{SignalStack, in_handler};
    use stackweave_testkit::stack_checker::StackChecker;

    let mut checker = StackChecker::new(4096);
    let mut check = || checker.check_here("static program", &[Oracle::Libgcc]);
    check();
    // SAFETY: the fixtures get a callback with its own data.
    call_through(&mut check, |callback, data| unsafe {
        sw_recurse(100, callback, data);
        sw_sort(callback, data);
        sw_throw_through(callback, data);
    });
    for stack in [SignalStack::Normal, SignalStack::Alternate] {
        in_handler(stack, &mut |context| {
            // SAFETY: the context is that of the handler that runs.
            unsafe { checker.check_context("handler in a static program", context) };
        });
    }
    let checks = checker.verdict()?;
    if checks > 10 { Ok(()) } else { Err(format!("only {checks} checks")) }
}

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
fn main() {}
