//! The small objects that the suite creates.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ironorb::poa::{ObjectId, Poa, PoaCurrent, ServantActivator, Unavailable};
use ironorb::{Servant, SystemException};

use super::{adapter_error, internal, root_poa};
use crate::interop::{self, NodeRef, Undeclared, deep, skew_server};

#[derive(Debug)]
pub(super) struct NodeServant {
    pub(super) id: i32,
}

impl interop::Node for NodeServant {
    fn id(&self) -> Result<i32, SystemException> {
        Ok(self.id)
    }

    fn twin(&self) -> Result<Option<NodeRef>, SystemException> {
        root_poa()?.activate(NodeServant { id: self.id }).map(Some).map_err(adapter_error)
    }

    fn destroy(&self) -> Result<(), SystemException> {
        match (PoaCurrent.poa(), PoaCurrent.object_id()) {
            (Some(poa), Some(id)) => poa.deactivate(&id).map_err(adapter_error),
            _ => Err(internal("a servant was called by hand, not by its ORB")),
        }
    }
}

#[derive(Debug)]
pub(super) struct SpriteServant(Mutex<Sprite>);

#[derive(Debug)]
struct Sprite {
    name: String,
    area: f64,
    x: f64,
    y: f64,
}

impl SpriteServant {
    pub(super) fn new(name: &str, area: f64) -> Self {
        SpriteServant(Mutex::new(Sprite { name: name.to_owned(), area, x: 0.0, y: 0.0 }))
    }

    fn sprite(&self) -> MutexGuard<'_, Sprite> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl interop::Shape for SpriteServant {
    fn name(&self) -> Result<String, SystemException> {
        Ok(self.sprite().name.clone())
    }

    fn set_name(&self, value: &str) -> Result<(), SystemException> {
        self.sprite().name = value.to_owned();
        Ok(())
    }

    fn area(&self) -> Result<f64, SystemException> {
        Ok(self.sprite().area)
    }
}

impl interop::Movable for SpriteServant {
    fn move_(&self, dx: f64, dy: f64) -> Result<(), SystemException> {
        let mut sprite = self.sprite();
        sprite.x += dx;
        sprite.y += dy;
        Ok(())
    }

    fn x(&self) -> Result<f64, SystemException> {
        Ok(self.sprite().x)
    }

    fn y(&self) -> Result<f64, SystemException> {
        Ok(self.sprite().y)
    }
}

impl interop::Scalable for SpriteServant {
    fn scale(&self, factor: f64) -> Result<(), SystemException> {
        self.sprite().area *= factor;
        Ok(())
    }
}

impl interop::Sprite for SpriteServant {
    fn draw(&self, frame: i32) -> Result<String, SystemException> {
        Ok(format!("{}{frame}", self.sprite().name))
    }
}

#[derive(Debug, Default)]
pub(super) struct GaugeServant(Mutex<deep::Level>);

impl deep::Gauge for GaugeServant {
    fn reading(&self) -> Result<deep::Level, SystemException> {
        Ok(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_reading(&self, to: deep::Level) -> Result<(), SystemException> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = to;
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct SkewServant;

impl interop::SkewServer for SkewServant {
    fn skew(&self, code: i32) -> Result<(), skew_server::SkewError> {
        Err(Undeclared { code }.into())
    }
}

/// Forwards each request of its adapter to the reference in the object id.
#[derive(Debug)]
pub(super) struct Forwarder;

impl ServantActivator for Forwarder {
    fn incarnate(&self, id: &ObjectId, poa: &Poa) -> Result<Arc<dyn Servant>, Unavailable> {
        let target = String::from_utf8_lossy(id.as_bytes());
        Err(match poa.orb().string_to_object(&target) {
            Ok(target) => Unavailable::Forward(target),
            Err(e) => Unavailable::Raise(e),
        })
    }
}
