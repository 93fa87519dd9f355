//! Buffers that are used again: fresh pages cost as much as decoding into them.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::buffer::Buffer;
use bytes::Bytes;

/// Bytes that idle buffers may hold.
const MAX_IDLE: usize = 128 << 20;

/// A pool of buffers, which come back when the Arrow arrays made of them are dropped.
#[derive(Debug, Default)]
pub(crate) struct BufferPool {
    idle: Mutex<Vec<Vec<u64>>>,
}

impl BufferPool {
    /// A buffer of `length` bytes of any content.
    pub(crate) fn take(self: &Arc<Self>, length: usize) -> PooledBuffer {
        let words = length.div_ceil(8);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        // The smallest that is large enough, and none that is far larger: an array may keep its buffer for long.
        let fit = idle
            .iter()
            .enumerate()
            .filter(|(_, b)| (words..=words.saturating_mul(2).max(512)).contains(&b.len()))
            .min_by_key(|(_, b)| b.len())
            .map(|(i, _)| i);
        let buffer = fit.map(|i| idle.swap_remove(i));
        drop(idle);
        let buffer = buffer.unwrap_or_else(|| vec![0; words]);
        PooledBuffer { buffer, length, pool: Arc::clone(self) }
    }

    fn give_back(&self, buffer: Vec<u64>) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push(buffer);
        while idle.iter().map(|b| b.len() * 8).sum::<usize>() > MAX_IDLE {
            idle.remove(0);
        }
    }
}

/// A buffer of a pool, aligned for every element type.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    buffer: Vec<u64>,
    length: usize,
    pool: Arc<BufferPool>,
}

impl PooledBuffer {
    /// Its bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.buffer).get(..self.length).unwrap_or_default()
    }

    /// Its bytes.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.buffer).get_mut(..self.length).unwrap_or_default()
    }

    /// The same memory as an Arrow buffer, without a copy.
    pub(crate) fn into_arrow(self) -> Buffer {
        Buffer::from(Bytes::from_owner(self))
    }
}

impl AsRef<[u8]> for PooledBuffer {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_when_the_arrow_buffer_is_dropped() {
        let pool = Arc::new(BufferPool::default());
        let mut a = pool.take(13);
        a.bytes_mut().fill(7);
        let address = a.bytes().as_ptr();
        let arrow = a.into_arrow();
        assert_eq!((arrow.as_slice(), arrow.as_ptr()), (&[7u8; 13][..], address));
        assert_ne!(pool.take(13).bytes().as_ptr(), address);
        drop(arrow);
        assert!(pool.take(16).bytes().as_ptr() == address || pool.take(16).bytes().as_ptr() == address);
        assert_eq!(pool.take(0).bytes().len(), 0);
    }
}
