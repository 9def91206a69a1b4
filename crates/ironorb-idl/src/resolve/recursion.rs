//! Finds structs and unions that contain themselves through sequences.

use crate::model::{DefId, DefKind, Model, Type};

/// Sets `recursive`. One pass of Tarjan's algorithm over the graph of types, without recursion in the code,
/// because chains of typedefs are as long as a file.
pub(crate) fn mark(model: &mut Model) {
    let edges: Vec<Vec<u32>> = model.definitions().iter().map(|definition| edges(&definition.kind)).collect();
    let mut order = vec![UNSEEN; edges.len()];
    let mut low = vec![0u32; edges.len()];
    let mut on_stack = vec![false; edges.len()];
    let mut stack: Vec<u32> = Vec::new();
    let mut clock = 0u32;
    let mut recursive = vec![false; edges.len()];
    let mut path: Vec<(u32, usize)> = Vec::new();
    for start in 0..edges.len() as u32 {
        if order[start as usize] != UNSEEN {
            continue;
        }
        path.push((start, 0));
        while let Some((node, edge)) = path.pop() {
            let at = node as usize;
            if edge == 0 {
                order[at] = clock;
                low[at] = clock;
                clock += 1;
                stack.push(node);
                on_stack[at] = true;
            }
            if let Some(&next) = edges[at].get(edge) {
                path.push((node, edge + 1));
                if order[next as usize] == UNSEEN {
                    path.push((next, 0));
                } else if on_stack[next as usize] {
                    low[at] = low[at].min(order[next as usize]);
                }
                continue;
            }
            if low[at] == order[at] {
                let mut members = Vec::new();
                while let Some(member) = stack.pop() {
                    on_stack[member as usize] = false;
                    members.push(member);
                    if member == node {
                        break;
                    }
                }
                let cyclic = members.len() > 1 || edges[at].contains(&node);
                for member in members {
                    recursive[member as usize] = cyclic;
                }
            }
            if let Some(&(parent, _)) = path.last() {
                low[parent as usize] = low[parent as usize].min(low[at]);
            }
        }
    }
    for (definition, recursive) in model.definitions.iter_mut().zip(recursive) {
        match &mut definition.kind {
            DefKind::Struct(body) | DefKind::Exception(body) => body.recursive = recursive,
            DefKind::Union(union) => union.recursive = recursive,
            _ => {}
        }
    }
}

fn edges(kind: &DefKind) -> Vec<u32> {
    let mut out = Vec::new();
    match kind {
        DefKind::Struct(body) | DefKind::Exception(body) => {
            body.members.iter().for_each(|member| named(&member.ty, &mut out));
        }
        DefKind::Union(union) => union.cases.iter().for_each(|case| named(&case.member.ty, &mut out)),
        DefKind::Typedef(alias) => named(&alias.ty, &mut out),
        _ => {}
    }
    out
}

fn named(ty: &Type, out: &mut Vec<u32>) {
    let mut ty = ty;
    loop {
        match ty {
            // Keys hold no other types.
            Type::Map { value, .. } => ty = value,
            Type::Sequence { element, .. } | Type::Array { element, .. } => ty = element,
            Type::Named(DefId(id)) => {
                out.push(*id);
                return;
            }
            _ => return,
        }
    }
}

const UNSEEN: u32 = u32::MAX;
