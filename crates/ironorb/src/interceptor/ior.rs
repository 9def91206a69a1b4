//! Interceptors of the making of references (CORBA 3.3 part 1, 16.5).

use std::sync::Arc;

use ironorb_giop::ior::TaggedComponent;

/// Sees each adapter being made, and may add components to its references.
pub trait IorInterceptor: Send + Sync + 'static {
    /// A name for messages; empty by default.
    fn name(&self) -> &str {
        ""
    }

    /// Called while an adapter is being made. Components added here are in all its references.
    fn establish_components(&self, adapter: &mut IorInfo<'_>);

    /// Called when the adapter's components are complete.
    fn components_established(&self, adapter: &IorInfo<'_>) {
        let _ = adapter;
    }
}

/// What an IOR interceptor can learn about an adapter.
#[derive(Debug)]
pub struct IorInfo<'a> {
    adapter_name: &'a [String],
    components: Vec<TaggedComponent<'static>>,
}

impl<'a> IorInfo<'a> {
    /// The names of the adapters, from the root's child to this adapter; empty for the root.
    pub fn adapter_name(&self) -> &'a [String] {
        self.adapter_name
    }

    /// Adds a component to every reference of the adapter.
    pub fn add_component(&mut self, component: TaggedComponent<'static>) {
        self.components.push(component);
    }

    /// The components that have been added so far.
    pub fn components(&self) -> &[TaggedComponent<'static>] {
        &self.components
    }
}

/// All IOR interceptors of an ORB.
#[derive(Clone, Default)]
pub(crate) struct IorChain(Vec<Arc<dyn IorInterceptor>>);

impl IorChain {
    pub(crate) fn push(&mut self, interceptor: Arc<dyn IorInterceptor>) {
        self.0.push(interceptor);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The components that interceptors add to the references of a new adapter.
    pub(crate) fn establish(&self, adapter_name: &[String]) -> Vec<TaggedComponent<'static>> {
        let mut info = IorInfo { adapter_name, components: Vec::new() };
        self.0.iter().for_each(|interceptor| interceptor.establish_components(&mut info));
        self.0.iter().for_each(|interceptor| interceptor.components_established(&info));
        info.components
    }
}
