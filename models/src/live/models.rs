//! Models of chunks that pass from threads to the writer and back.

use std::sync::Arc;
use std::time::Duration;

use loom::thread;

use super::chunk::{CHUNK, Chunk, FullChunks};
use super::futex::Doorbell;
use super::lane::Lane;
use super::pool::ChunkPool;
use super::session::RecordingSession;
use crate::Model;
use crate::atomic::{AtomicBool, Ordering};

pub(crate) const ALL: &[Model] = &[
    ("a_chunk_of_the_pool_has_one_owner", a_chunk_of_the_pool_has_one_owner),
    ("the_pool_detects_a_returned_chunk", the_pool_detects_a_returned_chunk),
    ("the_pool_wakes_waiting_threads", the_pool_wakes_waiting_threads),
    ("the_queue_keeps_the_order_of_each_thread", the_queue_keeps_the_order_of_each_thread),
    ("the_doorbell_wakes_the_writer", the_doorbell_wakes_the_writer),
    ("a_lane_passes_every_event_once", a_lane_passes_every_event_once),
];

const FOREVER: Duration = Duration::MAX;

/// Shares a value that is not `Sync`, as the threads of a recording do.
struct Shared<T>(T);

// SAFETY: the models prove that threads may share it; loom runs one thread at a time.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: the models prove that threads may share it; loom runs one thread at a time.
unsafe impl<T> Sync for Shared<T> {}

/// Lets two threads use the pool. Loom's cells detect if both own a chunk at the same time, or if one does not see what
/// the last one wrote.
fn a_chunk_of_the_pool_has_one_owner() {
    let pool = Arc::new(Shared(ChunkPool::new(2 * CHUNK)));
    let work = |mark: usize| {
        let pool = Arc::clone(&pool);
        move || {
            for _ in 0..2 {
                if let Ok(chunk) = pool.0.take() {
                    // SAFETY: taken from the pool.
                    let head = unsafe { &*chunk };
                    head.words.set(mark);
                    assert_eq!(head.words.get(), mark);
                    pool.0.put(chunk);
                }
            }
        }
    };
    let threads = [thread::spawn(work(1)), thread::spawn(work(2))];
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let chunks = [pool.0.take().unwrap(), pool.0.take().unwrap()];
    assert!(chunks[0] != chunks[1] && pool.0.take().is_err());
}

/// Takes and returns the first chunk while another thread is about to take it.
fn the_pool_detects_a_returned_chunk() {
    let pool = Arc::new(Shared(ChunkPool::new(2 * CHUNK)));
    let chunks = [pool.0.take().unwrap(), pool.0.take().unwrap()];
    chunks.into_iter().for_each(|chunk| pool.0.put(chunk));
    let take = |returns_first: bool| {
        let pool = Arc::clone(&pool);
        move || {
            let mut taken: Vec<*mut Chunk> = [pool.0.take(), pool.0.take()].into_iter().flatten().collect();
            if returns_first && taken.len() == 2 {
                pool.0.put(taken.remove(0));
            }
            Shared(taken)
        }
    };
    let threads = [thread::spawn(take(false)), thread::spawn(take(true))];
    let [mut first, second] = threads.map(|thread| thread.join().unwrap().0);
    first.extend(second);
    assert!(first.len() <= 2 && (first.len() < 2 || first[0] != first[1]), "a chunk has two owners");
}

fn the_pool_wakes_waiting_threads() {
    let pool = Arc::new(Shared(ChunkPool::new(CHUNK)));
    let chunk = Shared(pool.0.take().unwrap());
    let returner = thread::spawn({
        let pool = Arc::clone(&pool);
        move || {
            let chunk = chunk;
            pool.0.put(chunk.0);
        }
    });
    while pool.0.wait().is_err() {}
    returner.join().unwrap();
}

fn the_queue_keeps_the_order_of_each_thread() {
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
            // SAFETY: removed from the queue, so this thread owns it.
            seen.push(unsafe { (*chunk).words.get() });
            // SAFETY: no other thread has it.
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

fn the_doorbell_wakes_the_writer() {
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
    // Read by exchanges, like the queue of chunks.
    while !(shared.1.fetch_or(false, Ordering::SeqCst) && shared.2.fetch_or(false, Ordering::SeqCst)) {
        shared.0.sleep(FOREVER);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Does a round of the writer (`drain.rs`): full chunks first, then the published events of a lane's current chunk.
fn take_round(session: &RecordingSession, lane: &Lane, seen: &mut Vec<u64>) {
    let mut take_words = |chunk: &Chunk, end: usize| {
        // SAFETY: the lane has published them.
        seen.extend_from_slice(unsafe { chunk.words(chunk.taken.get(), end) });
        chunk.taken.set(end);
    };
    session.full.take(|chunk| {
        // SAFETY: removed from the queue, so the writer owns it.
        let head = unsafe { &*chunk };
        take_words(head, head.words.get());
        // SAFETY: the writer has a reference to the lane.
        unsafe { &*head.lane.get() }.shared.expected.set(head.sequence.get() + 1);
        session.pool.put(chunk);
    });
    if let Some((chunk, end)) = lane.partial() {
        take_words(chunk, end);
    }
}

/// Passes events through one chunk with space for two of them: the thread waits until the writer returns it.
fn a_lane_passes_every_event_once() {
    const EVENTS: u64 = 3;
    let session = Arc::new(RecordingSession::new(0));
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
            // A real writer also polls periodically.
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
