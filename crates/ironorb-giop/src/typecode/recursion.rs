//! Checks which recursive types are legal.
//!
//! IDL allows a struct, union or value to contain itself through a sequence, and a value to contain itself
//! directly. Bytes can describe more: a typedef of itself, a sequence of itself, a struct that contains
//! itself. These are refused, because they are not types or have no finite values, and every later walk would
//! have to handle them.

use super::node::{Child, Node};

/// Whether every cycle contains a struct, union or value (so that it has a named type) and a sequence, union
/// or value (so that its values are finite), and no value type is its own base.
pub(super) fn is_legal(nodes: &[Node]) -> bool {
    let anonymous = |node: &Node, visit: &mut dyn FnMut(&Child)| {
        if matches!(node, Node::Alias { .. } | Node::Sequence { .. } | Node::Array { .. }) {
            node.children(visit);
        }
    };
    let endless = |node: &Node, visit: &mut dyn FnMut(&Child)| {
        if matches!(node, Node::Alias { .. } | Node::Array { .. } | Node::Struct { .. }) {
            node.children(visit);
        }
    };
    let base = |node: &Node, visit: &mut dyn FnMut(&Child)| match node {
        Node::Value { base: Some(base), .. } | Node::Alias { original: base, .. } => visit(base),
        _ => {}
    };
    !has_cycle(nodes, anonymous) && !has_cycle(nodes, endless) && !has_cycle(nodes, base)
}

/// Whether there is a cycle along these edges.
fn has_cycle(nodes: &[Node], edges: impl Fn(&Node, &mut dyn FnMut(&Child))) -> bool {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Entered,
        Done,
    }
    enum Step {
        Enter(u32),
        Leave(u32),
    }
    let mut states = vec![State::New; nodes.len()];
    let mut work = Vec::new();
    for start in 0..nodes.len() as u32 {
        work.push(Step::Enter(start));
        while let Some(step) = work.pop() {
            match step {
                Step::Leave(index) => states[index as usize] = State::Done,
                Step::Enter(index) => {
                    let node = &nodes[index as usize];
                    if states[index as usize] == State::Done {
                        continue;
                    }
                    if states[index as usize] == State::Entered {
                        return true;
                    }
                    states[index as usize] = State::Entered;
                    work.push(Step::Leave(index));
                    edges(node, &mut |child| {
                        if let Child::Here(child) = child {
                            work.push(Step::Enter(*child));
                        }
                    });
                }
            }
        }
    }
    false
}
