# How programs are built with TAO. TAO_TREE is a built tree of ACE and TAO, ACE_wrappers.
ifndef TAO_TREE
$(error TAO_TREE names no built tree of ACE and TAO)
endif

THIS := $(dir $(lastword $(MAKEFILE_LIST)))

export ACE_ROOT := $(TAO_TREE)
export TAO_ROOT := $(TAO_TREE)/TAO
export LD_LIBRARY_PATH := $(TAO_TREE)/lib

# The tree's own flags: its headers and libraries fit no others.
include $(ACE_ROOT)/include/makeinclude/wrapper_macros.GNU
FLAGS = $(filter-out -Wall -W,$(CPPFLAGS) $(CCFLAGS)) -w -I$(ACE_ROOT) -I$(TAO_ROOT) -include $(THIS)anys.hh
# With the path for libraries of libraries, too.
LIBS  = -L$(ACE_ROOT)/lib -Wl,--disable-new-dtags,-rpath,$(ACE_ROOT)/lib -lTAO_PortableServer -lTAO_AnyTypeCode -lTAO -lACE -lpthread
RT    = -lTAO_RTPortableServer -lTAO_RTCORBA -lTAO_PI -lTAO_CodecFactory

# Without what is for anys of the types in the IDL: as with basic types (anys.hh), a new compiler would not find it.
IDL_COMPILER = $(ACE_ROOT)/bin/tao_idl -Sa -St -g $(ACE_ROOT)/bin/ace_gperf
