//! Models of chunks on their way from threads to the writer and back.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::chunk::{CHUNK, Chunk, FullChunks};
use super::futex::Doorbell;
use super::lane::Lane;
use super::pool::Pool;
use super::session::Session;
use crate::Model;
use crate::atomic::{AtomicBool, Ordering};

pub(crate) const ALL: &[Model] = &[
    ("pool_gives_a_chunk_to_one_thread", pool_gives_a_chunk_to_one_thread),
    ("pool_knows_a_chunk_that_came_back", pool_knows_a_chunk_that_came_back),
    ("pool_wakes_who_waits", pool_wakes_who_waits),
    ("queue_keeps_the_order_of_each_thread", queue_keeps_the_order_of_each_thread),
    ("doorbell_is_heard", doorbell_is_heard),
    ("lane_hands_over_every_event_once", lane_hands_over_every_event_once),
];

const FOREVER: Duration = Duration::MAX;

/// Threads of a model share what is not `Sync` by itself, as the threads of a recording do.
struct Shared<T>(T);

// SAFETY: that threads may do so is what the models are to show; loom runs one at a time.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

/// Loom's cells tell when two threads have a chunk at once, or one does not see what the last one wrote.
fn pool_gives_a_chunk_to_one_thread() {
    let pool = Arc::new(Shared(Pool::new(2 * CHUNK)));
    let work = |mark: usize| {
        let pool = Arc::clone(&pool);
        move || {
            for _ in 0..2 {
                if let Ok(chunk) = pool.0.take() {
                    // SAFETY: taken from the pool.
                    let head = unsafe { &*chunk };
                    head.words.set(mark);
                    assert_eq!(head.words.get(), mark);
                    pool.0.give_back(chunk);
                }
            }
        }
    };
    let threads = [thread::spawn(work(1)), thread::spawn(work(2))];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let chunks = [pool.0.take().unwrap(), pool.0.take().unwrap()];
    assert!(chunks[0] != chunks[1] && pool.0.take().is_err());
}

/// The first chunk goes and comes back while another thread is about to take it.
fn pool_knows_a_chunk_that_came_back() {
    let pool = Arc::new(Shared(Pool::new(2 * CHUNK)));
    let chunks = [pool.0.take().unwrap(), pool.0.take().unwrap()];
    chunks.into_iter().for_each(|chunk| pool.0.give_back(chunk));
    let take = |gives_first_back: bool| {
        let pool = Arc::clone(&pool);
        move || {
            let mut taken: Vec<*mut Chunk> = [pool.0.take(), pool.0.take()].into_iter().flatten().collect();
            if gives_first_back && taken.len() == 2 {
                pool.0.give_back(taken.remove(0));
            }
            Shared(taken)
        }
    };
    let threads = [thread::spawn(take(false)), thread::spawn(take(true))];
    let [mut first, second] = threads.map(|thread| thread.join().unwrap().0);
    first.extend(second);
    assert!(first.len() <= 2 && (first.len() < 2 || first[0] != first[1]), "a chunk was given twice");
}

fn pool_wakes_who_waits() {
    let pool = Arc::new(Shared(Pool::new(CHUNK)));
    let chunk = Shared(pool.0.take().unwrap());
    let giver = thread::spawn({
        let pool = Arc::clone(&pool);
        move || {
            let chunk = chunk;
            pool.0.give_back(chunk.0);
        }
    });
    while pool.0.wait().is_err() {}
    giver.join().unwrap();
}

fn queue_keeps_the_order_of_each_thread() {
    let queue = Arc::new(Shared(FullChunks::new()));
    let push = |mark: usize| {
        let queue = Arc::clone(&queue);
        move || {
            for number in 0..2 {
                let chunk = Chunk::map();
                // SAFETY: mapped just now.
                unsafe { (*chunk).words.set(2 * mark + number) };
                queue.0.push(chunk);
            }
        }
    };
    let threads = [thread::spawn(push(0)), thread::spawn(push(1))];
    let mut seen = Vec::new();
    let mut take = || {
        queue.0.take(|chunk| {
            // SAFETY: out of the queue, so ours.
            seen.push(unsafe { (*chunk).words.get() });
            // SAFETY: nobody else has it.
            unsafe { Chunk::unmap(chunk) };
        });
    };
    take();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    take();
    for thread in 0..2 {
        let own: Vec<usize> = seen.iter().copied().filter(|mark| mark / 2 == thread).collect();
        assert_eq!(own, [2 * thread, 2 * thread + 1]);
    }
    assert!(seen.len() == 4 && queue.0.is_empty());
}

fn doorbell_is_heard() {
    let shared = Arc::new((Doorbell::new(), AtomicBool::new(false), AtomicBool::new(false)));
    let ring = |second: bool| {
        let shared = Arc::clone(&shared);
        move || {
            let flag = if second { &shared.2 } else { &shared.1 };
            flag.swap(true, Ordering::SeqCst);
            shared.0.ring();
        }
    };
    let threads = [thread::spawn(ring(false)), thread::spawn(ring(true))];
    // As the queue of chunks is looked at: by exchanges.
    while !(shared.1.fetch_or(false, Ordering::SeqCst) && shared.2.fetch_or(false, Ordering::SeqCst)) {
        shared.0.sleep(FOREVER);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// What the writer does in a round (`drain.rs`): full chunks, then what a lane has published in the one that it fills.
fn take_round(session: &Session, lane: &Lane, seen: &mut Vec<u64>) {
    let mut take_words = |chunk: &Chunk, end: usize| {
        // SAFETY: the lane has published them.
        seen.extend_from_slice(unsafe { chunk.words(chunk.taken.get(), end) });
        chunk.taken.set(end);
    };
    session.full.take(|chunk| {
        // SAFETY: out of the queue, so the writer's.
        let head = unsafe { &*chunk };
        take_words(head, head.words.get());
        // SAFETY: the writer has a reference to the lane.
        unsafe { &*head.lane.get() }.shared.expected.set(head.sequence.get() + 1);
        session.pool.give_back(chunk);
    });
    if let Some((chunk, end)) = lane.partial() {
        take_words(chunk, end);
    }
}

/// A chunk has room for two events here, and there is one chunk: the thread waits until the writer gives it back.
fn lane_hands_over_every_event_once() {
    const EVENTS: u64 = 3;
    let session = Arc::new(Session::new(0));
    let lane = Shared(Lane::map(&session));
    let key = Arc::as_ptr(&session).addr();
    let is_done = Arc::new(AtomicBool::new(false));
    let thread = thread::spawn({
        let shared = Shared((lane.0, Arc::clone(&session), Arc::clone(&is_done)));
        move || {
            let shared = shared;
            let (lane, session, is_done) = (Shared(shared.0.0), shared.0.1, shared.0.2);
            // SAFETY: the thread's reference.
            let own = unsafe { &*lane.0 };
            for number in 0..EVENTS {
                assert!(own.enter(key));
                own.append(1, &[number]);
                own.leave(key);
            }
            own.end_of_thread();
            // SAFETY: not used again.
            unsafe { Lane::release(lane.0) };
            // A writer looks every so often, and has no need to be told.
            is_done.swap(true, Ordering::SeqCst);
            session.doorbell.ring();
        }
    });
    let mut seen = Vec::new();
    // SAFETY: the writer's reference.
    let known = unsafe { &*lane.0 };
    while !is_done.fetch_or(false, Ordering::SeqCst) {
        take_round(&session, known, &mut seen);
        session.doorbell.sleep(FOREVER);
    }
    thread.join().unwrap();
    assert!(known.has_ended());
    take_round(&session, known, &mut seen);
    let expected: Vec<u64> = (0..EVENTS).flat_map(|number| [1 << 8 | 1, number]).collect();
    assert_eq!(seen, expected);
    // SAFETY: not used again.
    unsafe { Lane::release(lane.0) };
}
