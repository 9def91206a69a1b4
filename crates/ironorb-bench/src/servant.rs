//! The object that is called.

use ironorb::SystemException;

use crate::generated::bench::{BinStruct, Echo};

/// Gives back what it was given.
#[derive(Debug)]
pub(crate) struct EchoServant;

impl Echo for EchoServant {
    fn nothing(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn forget(&self) -> Result<(), SystemException> {
        Ok(())
    }

    fn take_long(&self, value: i32) -> Result<i32, SystemException> {
        Ok(value)
    }

    fn take_string(&self, value: &str) -> Result<String, SystemException> {
        Ok(value.to_owned())
    }

    fn take_structs(&self, values: &[BinStruct]) -> Result<(), SystemException> {
        std::hint::black_box(values);
        Ok(())
    }

    fn take_octets(&self, values: &[u8]) -> Result<Vec<u8>, SystemException> {
        Ok(values.to_vec())
    }

    fn take_longs(&self, values: &[i32]) -> Result<Vec<i32>, SystemException> {
        Ok(values.to_vec())
    }

    fn take_doubles(&self, values: &[f64]) -> Result<Vec<f64>, SystemException> {
        Ok(values.to_vec())
    }
}
