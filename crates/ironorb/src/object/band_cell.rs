//! The band of priorities of a connection, in a few octets of it.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use ironorb_giop::real_time::PriorityBand;

/// A band of priorities or none, in a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PackedBand(u32);

/// A packed band in a place that threads read and change without a lock.
pub(crate) struct BandCell(AtomicU32);

impl PackedBand {
    /// No band: its lowest priority would be below 0.
    pub(crate) const NONE: PackedBand = PackedBand(u32::MAX);

    /// Packs a band: its lowest priority above its highest, in 16 bits each. One that holds no priority counts as none.
    pub(crate) fn new(band: Option<PriorityBand>) -> PackedBand {
        match band {
            Some(PriorityBand { low, high }) if (0..=high).contains(&low) => {
                PackedBand((low as u32) << 16 | high as u32)
            }
            _ => PackedBand::NONE,
        }
    }

    /// The band.
    #[inline]
    pub(crate) fn get(self) -> Option<PriorityBand> {
        (self != PackedBand::NONE).then_some(PriorityBand { low: (self.0 >> 16) as i16, high: self.0 as i16 })
    }
}

impl BandCell {
    /// A cell with this band.
    pub(crate) fn new(band: PackedBand) -> BandCell {
        BandCell(AtomicU32::new(band.0))
    }

    /// The band.
    #[inline]
    pub(crate) fn get(&self) -> PackedBand {
        PackedBand(self.0.load(Ordering::Acquire))
    }

    /// Sets the band.
    pub(crate) fn set(&self, band: PackedBand) {
        self.0.store(band.0, Ordering::Release);
    }
}

impl fmt::Debug for PackedBand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl fmt::Debug for BandCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bands_with_priorities_are_kept_and_others_are_none() {
        let kept = |low, high| BandCell::new(PackedBand::new(Some(PriorityBand { low, high }))).get().get();
        for (low, high) in [(0, 0), (0, i16::MAX), (i16::MAX, i16::MAX), (3, 500)] {
            assert_eq!(kept(low, high), Some(PriorityBand { low, high }));
        }
        for (low, high) in [(-1, -1), (-1, 5), (5, 4), (i16::MIN, i16::MAX), (0, -1)] {
            assert_eq!(kept(low, high), None);
        }
        let cell = BandCell::new(PackedBand::new(None));
        assert_eq!(cell.get(), PackedBand::NONE);
        let band = PackedBand::new(Some(PriorityBand { low: 1, high: 2 }));
        cell.set(band);
        assert_eq!(cell.get(), band);
        cell.set(PackedBand::NONE);
        assert_eq!(cell.get().get(), None);
    }
}
