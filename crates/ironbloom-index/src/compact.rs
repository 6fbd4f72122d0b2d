//! Segments become one, without reading the tables.

use std::ops::Range;
use std::path::Path;

use ironbloom_blocks::bounds::Span;
use ironbloom_blocks::{MAX_ROWS, Move, Placed, Postings};

use crate::builder::pack_bounds;
use crate::error::Error;
use crate::index::Index;
use crate::resources::Resources;
use crate::segment::{Segment, SegmentColumn};
use crate::segment_bounds::SegmentBounds;
use crate::segment_rows::SegmentRows;
use crate::workspace::Workspace;

/// What is done with a sealed column that has this number of blocks.
pub(crate) type Keep<'a> = dyn Fn(Postings, u32) -> Result<SegmentColumn, Error> + 'a;

/// Segments of fewer rows are merged with those of other sources: every segment adds to the time of a lookup, and more so in a
/// bucket. Merging larger ones would take long and save little.
pub(crate) const SMALL_ROWS: u64 = 1 << 24;

/// Segments that are merged.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Group {
    segments: Range<usize>,
    rows: u64,
}

impl Index {
    /// Merges the segments of each source into one (of at most 2^30 rows), and small ones with those of other sources, without
    /// reading the tables. Every segment adds to the lookup time. What is left of removed sources is removed, too.
    ///
    /// If it fails, because the file is damaged, nothing has changed.
    pub fn compact(&mut self) -> Result<(), Error> {
        self.merge_segments(MAX_ROWS, &|postings, _| Ok(SegmentColumn::Sealed(postings)))
    }

    /// As [`compact`](Self::compact), in bounded memory: segments that are too large to be merged in it stay as they are, and
    /// what was merged goes to a temporary file without a name in this folder.
    pub fn compact_within(
        &mut self,
        resources: Resources,
        folder: impl AsRef<Path>,
    ) -> Result<(), Error> {
        let workspace = Workspace::new(folder.as_ref(), resources);
        let keep = |postings, blocks| workspace.put(postings, blocks);
        self.merge_segments(resources.mergeable_rows(), &keep)
    }

    /// Merges segments to such of at most this many rows, each column as `keep` keeps it.
    pub(crate) fn merge_segments(&mut self, most_rows: u64, keep: &Keep<'_>) -> Result<(), Error> {
        self.seal();
        let groups = self.mergeable(most_rows);
        let is_changed = |group: &Group| {
            let segments = &self.segments[group.segments.clone()];
            // What is left of one that is too large to be merged may still be too large.
            segments.len() > 1 || (segments[0].rows.has_gone() && group.rows <= most_rows)
        };
        let mut merged = Vec::new();
        for group in &groups {
            let changed = is_changed(group).then(|| self.merge(group.segments.clone(), keep));
            merged.push(changed.transpose()?);
        }
        let mut old: Vec<Option<Segment>> =
            std::mem::take(&mut self.segments).into_iter().map(Some).collect();
        for (group, merged) in groups.iter().zip(merged) {
            self.segments.extend(merged.or_else(|| old[group.segments.start].take()));
        }
        self.order_segments();
        Ok(())
    }

    /// Segments that become one: of one source, or small ones, and not too many rows.
    fn mergeable(&self, most_rows: u64) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (i, segment) in self.segments.iter().enumerate() {
            let rows = segment.rows.rows();
            match groups.last_mut() {
                Some(group)
                    if group.rows + rows <= most_rows
                        && self.belong_together(&self.segments[i - 1], segment) =>
                {
                    group.segments.end = i + 1;
                    group.rows += rows;
                }
                _ => groups.push(Group { segments: i..i + 1, rows }),
            }
        }
        groups
    }

    fn belong_together(&self, one: &Segment, next: &Segment) -> bool {
        let is_small = |segment: &Segment| segment.rows.rows() < SMALL_ROWS;
        let source = one.rows.only_source();
        (source.is_some() && source == next.rows.only_source()) || (is_small(one) && is_small(next))
    }

    fn merge(&self, group: Range<usize>, keep: &Keep<'_>) -> Result<Segment, Error> {
        let parts = &self.segments[group.clone()];
        let mut blocks = 0;
        let mut moves = Vec::new();
        for part in parts {
            let moved = part.rows.moves(blocks);
            blocks = moved.last().map_or(blocks, |last| last.to + last.blocks.len() as u32);
            moves.push(moved);
        }
        let (mut columns, mut bounds) = (Vec::new(), Vec::new());
        for column in 0..self.columns.len() {
            let mut read = Vec::new();
            let mut spans = Some(Vec::with_capacity(blocks as usize));
            for ((number, segment), moves) in group.clone().zip(parts).zip(&moves) {
                let postings = segment.columns[column].read();
                read.push(
                    postings.map_err(|fault| self.column_error(number, segment, column, fault))?,
                );
                let more = segment.bounds.spans(column);
                let more = more.map_err(|fault| self.bounds_error(number, segment, fault))?;
                // If the bounds of a part are not known, those of the whole are not.
                spans = spans.zip(more).map(|(mut spans, more): (Vec<Span>, _)| {
                    let kept = |kept: &Move| kept.blocks.start as usize..kept.blocks.end as usize;
                    moves.iter().for_each(|moved| spans.extend_from_slice(&more[kept(moved)]));
                    spans
                });
            }
            let placed = read.iter().zip(&moves);
            let placed: Vec<Placed<'_>> =
                placed.map(|(postings, moves)| Placed { postings, moves }).collect();
            let merged = Postings::merge(&placed, blocks, self.params());
            drop(placed);
            drop(read);
            bounds.push(spans.map(|spans| pack_bounds(&spans, &merged)));
            columns.push(keep(merged, blocks)?);
        }
        let rows = parts.iter().flat_map(|part| part.rows.present());
        let rows = rows.map(|(source, rows)| (Some(source), rows));
        let rows = SegmentRows::join(rows, self.params().block_rows());
        let bounds: Option<Vec<_>> = bounds.into_iter().collect();
        let bounds = bounds.map_or(SegmentBounds::Unknown, SegmentBounds::Sealed);
        Ok(Segment { rows, columns, bounds })
    }
}
