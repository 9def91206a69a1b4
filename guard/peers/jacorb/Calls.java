// JacORB's side of the suites of calls: serves and calls latency.idl and cubit.idl. Its command line and its commands are
// those of omniORB's side, omniorb/calls.cc.

import idl_cubit.Many;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import latency.BinStruct;
import latency.Populated;
import latency.Tally;
import latency.ttcp_sequence;
import org.omg.CORBA.Any;
import org.omg.CORBA.ORB;
import org.omg.CORBA.Request;
import org.omg.CORBA.TCKind;
import org.omg.PortableServer.POA;
import org.omg.PortableServer.POAHelper;

public final class Calls {
  interface Sample {
    void once() throws Exception;
  }

  interface Call {
    void on(int object) throws Exception;
  }

  // ---- the data to send: the value of an element follows from its index

  static byte byteAt(int place) {
    return (byte) (' ' + place % 95);
  }

  static int longAt(int place) {
    return place * (int) 2654435761L;
  }

  static double doubleAt(int place) {
    return place * 0.37;
  }

  static BinStruct structAt(int place) {
    return new BinStruct((short) longAt(place), (char) byteAt(place), longAt(place), byteAt(place + 1), doubleAt(place));
  }

  static boolean isStructAt(BinStruct it, int place) {
    return it.s == (short) longAt(place) && it.c == (char) byteAt(place) && it.l == longAt(place)
        && it.o == byteAt(place + 1) && it.d == doubleAt(place);
  }

  // ---- the server of the latency suite

  static final AtomicLong calls = new AtomicLong(), elements = new AtomicLong(), wrong = new AtomicLong();

  interface IsRight {
    boolean at(int place);
  }

  static final class Sequence extends latency.ttcp_sequencePOA {
    private int called;

    private void nothing() {
      called++;
      calls.incrementAndGet();
    }

    private void take(int length, IsRight isRight) {
      nothing();
      elements.addAndGet(length);
      if (length == 0) return;
      for (int place : new int[] {0, (length - 1) / 2, length - 1}) if (!isRight.at(place)) wrong.incrementAndGet();
    }

    public void sendStructSeq_2way(BinStruct[] seq) { take(seq.length, place -> isStructAt(seq[place], place)); }
    public void sendOctetSeq_2way(byte[] seq) { take(seq.length, place -> seq[place] == byteAt(place)); }
    public void sendShortSeq_2way(short[] seq) { take(seq.length, place -> seq[place] == (short) longAt(place)); }
    public void sendLongSeq_2way(int[] seq) { take(seq.length, place -> seq[place] == longAt(place)); }
    public void sendCharSeq_2way(char[] seq) { take(seq.length, place -> seq[place] == (char) byteAt(place)); }
    public void sendDoubleSeq_2way(double[] seq) { take(seq.length, place -> seq[place] == doubleAt(place)); }
    public void sendNoParams_2way() { nothing(); }
    public void sendStructSeq_1way(BinStruct[] seq) { sendStructSeq_2way(seq); }
    public void sendOctetSeq_1way(byte[] seq) { sendOctetSeq_2way(seq); }
    public void sendShortSeq_1way(short[] seq) { sendShortSeq_2way(seq); }
    public void sendLongSeq_1way(int[] seq) { sendLongSeq_2way(seq); }
    public void sendCharSeq_1way(char[] seq) { sendCharSeq_2way(seq); }
    public void sendDoubleSeq_1way(double[] seq) { sendDoubleSeq_2way(seq); }
    public void sendNoParams_1way() { nothing(); }
  }

  static long residentBytes() {
    try {
      for (String line : Files.readAllLines(Paths.get("/proc/self/status")))
        if (line.startsWith("VmRSS:")) return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
    } catch (java.io.IOException e) {
      return 0;
    }
    return 0;
  }

  static final class Directory extends latency.directoryPOA {
    private final POA poa;
    private final List<byte[]> ids = new ArrayList<>();

    Directory(POA poa) {
      this.poa = poa;
    }

    public synchronized Populated populate(int objects) {
      long before = residentBytes();
      long begun = System.nanoTime();
      int activated = 0;
      try {
        for (; ids.size() < objects; activated++) ids.add(poa.activate_object(new Sequence()));
      } catch (org.omg.CORBA.UserException e) {
        throw new org.omg.CORBA.INTERNAL(e.toString());
      }
      return new Populated(activated, System.nanoTime() - begun, residentBytes() - before, 0);
    }

    public synchronized ttcp_sequence[] references(int first, int count) {
      int end = Math.min(ids.size(), first + count);
      ttcp_sequence[] objects = new ttcp_sequence[Math.max(0, end - first)];
      try {
        for (int place = first; place < end; place++)
          objects[place - first] = latency.ttcp_sequenceHelper.unchecked_narrow(poa.id_to_reference(ids.get(place)));
      } catch (org.omg.CORBA.UserException e) {
        throw new org.omg.CORBA.INTERNAL(e.toString());
      }
      return objects;
    }

    // This program has no dynamic servant.
    public ttcp_sequence dynamic_object() {
      return null;
    }

    public Tally taken() {
      return new Tally(calls.getAndSet(0), elements.getAndSet(0), wrong.getAndSet(0));
    }
  }

  // ---- the server of the cubit

  static int cube(int value) {
    return value * value * value;
  }

  static Many cube(Many it) {
    return new Many((byte) cube(it.o), cube(it.l), (short) cube(it.s));
  }

  static boolean same(Many a, Many b) {
    return a.o == b.o && a.l == b.l && a.s == b.s;
  }

  static volatile int forNobody;

  static final class Cubit extends idl_cubit.CubitPOA {
    public void nothing() {}
    public byte cube_octet(byte value) { return (byte) cube(value); }
    public short cube_short(short value) { return (short) cube(value); }
    public int cube_long(int value) { return cube(value); }
    public Many cube_many(Many value) { return cube(value); }

    public int[] cube_long_sequence(int[] values) {
      int[] cubes = new int[values.length];
      for (int place = 0; place < values.length; place++) cubes[place] = cube(values[place]);
      return cubes;
    }

    public Many[] cube_many_sequence(Many[] values) {
      Many[] cubes = new Many[values.length];
      for (int place = 0; place < values.length; place++) cubes[place] = cube(values[place]);
      return cubes;
    }

    public void nothing_oneway() {}
    public void cube_octet_oneway(byte value) { forNobody = cube(value); }
    public void cube_short_oneway(short value) { forNobody = cube(value); }
    public void cube_long_oneway(int value) { forNobody = cube(value); }
    public void cube_many_oneway(Many value) { forNobody = cube(value).l; }
    public void cube_long_sequence_oneway(int[] values) { forNobody = cube_long_sequence(values).length; }
    public void cube_many_sequence_oneway(Many[] values) { forNobody = cube_many_sequence(values).length; }
  }

  static void serve(ORB orb, String suite) throws Exception {
    POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
    org.omg.PortableServer.Servant servant;
    if (suite.equals("latency")) servant = new Directory(poa);
    else if (suite.equals("cubit")) servant = new Cubit();
    else throw new Exception("no suite is called " + suite);
    byte[] id = poa.activate_object(servant);
    System.out.println(orb.object_to_string(poa.id_to_reference(id)));
    poa.the_POAManager().activate();
    while (System.in.read() >= 0) {}
  }

  // ---- the client of the latency suite

  static final class Order {
    private final int kind, objects, iterations;
    private int place, left;
    private long random = 88172645463325252L;

    Order(String algorithm, int objects, int iterations) {
      kind = algorithm.equals("train") ? 0 : algorithm.equals("robin") ? 1 : 2;
      this.objects = objects;
      this.iterations = iterations;
      place = objects - 1;
    }

    int next() {
      if (kind == 2) {
        random ^= random << 13;
        random ^= random >>> 7;
        random ^= random << 17;
        return (int) Long.remainderUnsigned(random, objects);
      }
      if (kind == 0 && left > 0) {
        left--;
        return place;
      }
      left = iterations - 1;
      if (++place == objects) place = 0;
      return place;
    }
  }

  static final List<ttcp_sequence> known = new ArrayList<>();

  interface Insert {
    void into(Any any);
  }

  // A request cannot be sent again, so each call has a new one.
  static Call dynamic(ORB orb, String operation, boolean oneway, Insert argument) {
    return object -> {
      Request request = known.get(object)._request(operation);
      if (argument != null) argument.into(request.add_named_in_arg("ttcp_seq"));
      request.set_return_type(orb.get_primitive_tc(TCKind.tk_void));
      if (oneway) request.send_oneway();
      else request.invoke();
      if (request.env().exception() != null) throw request.env().exception();
    };
  }

  static Call callOf(ORB orb, boolean oneway, String type, int units, boolean isDynamic) throws Exception {
    String way = oneway ? "_1way" : "_2way";
    switch (type) {
      case "struct": {
        BinStruct[] seq = new BinStruct[units];
        for (int place = 0; place < units; place++) seq[place] = structAt(place);
        if (isDynamic) return dynamic(orb, "sendStructSeq" + way, oneway, any -> latency.StructSeqHelper.insert(any, seq));
        if (oneway) return object -> known.get(object).sendStructSeq_1way(seq);
        return object -> known.get(object).sendStructSeq_2way(seq);
      }
      case "octet": {
        byte[] seq = new byte[units];
        for (int place = 0; place < units; place++) seq[place] = byteAt(place);
        if (isDynamic) return dynamic(orb, "sendOctetSeq" + way, oneway, any -> latency.OctetSeqHelper.insert(any, seq));
        if (oneway) return object -> known.get(object).sendOctetSeq_1way(seq);
        return object -> known.get(object).sendOctetSeq_2way(seq);
      }
      case "short": {
        short[] seq = new short[units];
        for (int place = 0; place < units; place++) seq[place] = (short) longAt(place);
        if (isDynamic) return dynamic(orb, "sendShortSeq" + way, oneway, any -> latency.ShortSeqHelper.insert(any, seq));
        if (oneway) return object -> known.get(object).sendShortSeq_1way(seq);
        return object -> known.get(object).sendShortSeq_2way(seq);
      }
      case "long": {
        int[] seq = new int[units];
        for (int place = 0; place < units; place++) seq[place] = longAt(place);
        if (isDynamic) return dynamic(orb, "sendLongSeq" + way, oneway, any -> latency.LongSeqHelper.insert(any, seq));
        if (oneway) return object -> known.get(object).sendLongSeq_1way(seq);
        return object -> known.get(object).sendLongSeq_2way(seq);
      }
      case "char": {
        char[] seq = new char[units];
        for (int place = 0; place < units; place++) seq[place] = (char) byteAt(place);
        if (isDynamic) return dynamic(orb, "sendCharSeq" + way, oneway, any -> latency.CharSeqHelper.insert(any, seq));
        if (oneway) return object -> known.get(object).sendCharSeq_1way(seq);
        return object -> known.get(object).sendCharSeq_2way(seq);
      }
      case "double": {
        double[] seq = new double[units];
        for (int place = 0; place < units; place++) seq[place] = doubleAt(place);
        if (isDynamic) return dynamic(orb, "sendDoubleSeq" + way, oneway, any -> latency.DoubleSeqHelper.insert(any, seq));
        if (oneway) return object -> known.get(object).sendDoubleSeq_1way(seq);
        return object -> known.get(object).sendDoubleSeq_2way(seq);
      }
      case "void":
        if (isDynamic) return dynamic(orb, "sendNoParams" + way, oneway, null);
        if (oneway) return object -> known.get(object).sendNoParams_1way();
        return object -> known.get(object).sendNoParams_2way();
      default:
        throw new Exception("no type is called " + type);
    }
  }

  static Sample callsOf(ORB orb, String[] words) throws Exception {
    boolean oneway = words[2].equals("oneway");
    int units = Integer.parseInt(words[4]), objects = Integer.parseInt(words[8]);
    int iterations = Integer.parseInt(words[9]), batch = Integer.parseInt(words[10]);
    if (objects == 0 || objects > known.size() || words[6].equals("dsi")) throw new Exception("there are not so many objects");
    Call call = callOf(orb, oneway, words[3], units, !words[5].equals("sii"));
    Order order = new Order(words[7], objects, iterations);
    return () -> {
      for (int number = 0; number < batch; number++) call.on(order.next());
      if (oneway) known.get(order.next()).sendNoParams_2way();
    };
  }

  // ---- the client of the cubit

  static void check(boolean isRight) throws Exception {
    if (!isRight) throw new Exception("got what is no cube");
  }

  static Sample cubeOf(idl_cubit.Cubit to, boolean oneway, String kind, int count) throws Exception {
    Many many = new Many((byte) 5, 17, (short) 11);
    switch (kind) {
      case "void":
        return oneway ? to::nothing_oneway : to::nothing;
      case "octet":
        if (oneway) return () -> to.cube_octet_oneway((byte) 17);
        return () -> check(to.cube_octet((byte) 17) == (byte) cube(17));
      case "short":
        if (oneway) return () -> to.cube_short_oneway((short) 17);
        return () -> check(to.cube_short((short) 17) == (short) cube(17));
      case "long":
        if (oneway) return () -> to.cube_long_oneway(17);
        return () -> check(to.cube_long(17) == cube(17));
      case "many":
        if (oneway) return () -> to.cube_many_oneway(many);
        return () -> check(same(to.cube_many(many), cube(many)));
      case "longs": {
        int[] values = new int[count];
        for (int place = 0; place < count; place++) values[place] = place;
        if (oneway) return () -> to.cube_long_sequence_oneway(values);
        return () -> {
          int[] cubes = to.cube_long_sequence(values);
          check(cubes.length == count);
          for (int place = 0; place < count; place++) check(cubes[place] == cube(values[place]));
        };
      }
      case "manies": {
        Many[] values = new Many[count];
        for (int place = 0; place < count; place++) values[place] = new Many((byte) place, place, (short) place);
        if (oneway) return () -> to.cube_many_sequence_oneway(values);
        return () -> {
          Many[] cubes = to.cube_many_sequence(values);
          check(cubes.length == count);
          for (int place = 0; place < count; place++) check(same(cubes[place], cube(values[place])));
        };
      }
      default:
        throw new Exception("no kind is called " + kind);
    }
  }

  // Threads that make their calls on a common signal.
  static final class Crowd implements Sample, AutoCloseable {
    private final List<Thread> threads = new ArrayList<>();
    private long round;
    private int left;
    private boolean isOver, hasFailed;

    Crowd(idl_cubit.Cubit to, int clients, int calls) {
      for (int number = 0; number < clients; number++) {
        Thread thread = new Thread(() -> work(to, calls));
        thread.setDaemon(true);
        threads.add(thread);
        thread.start();
      }
    }

    private void work(idl_cubit.Cubit to, int calls) {
      for (long done = 0;; ) {
        synchronized (this) {
          while (!isOver && round == done) {
            try {
              wait();
            } catch (InterruptedException e) {
              return;
            }
          }
          if (isOver) return;
          done = round;
        }
        boolean failed = false;
        try {
          for (int number = 0; number < calls; number++) to.nothing();
        } catch (RuntimeException e) {
          failed = true;
        }
        synchronized (this) {
          hasFailed |= failed;
          if (--left == 0) notifyAll();
        }
      }
    }

    public synchronized void once() throws Exception {
      left = threads.size();
      round++;
      notifyAll();
      while (left > 0) wait();
      if (hasFailed) throw new Exception("a call of a thread failed");
    }

    public void close() throws InterruptedException {
      synchronized (this) {
        isOver = true;
        notifyAll();
      }
      for (Thread thread : threads) thread.join();
    }
  }

  static void call(ORB orb, String suite, String reference) throws Exception {
    org.omg.CORBA.Object object = orb.string_to_object(reference);
    latency.directory directory = null;
    idl_cubit.Cubit remote = null, local = null;
    if (suite.equals("latency")) directory = latency.directoryHelper.unchecked_narrow(object);
    else remote = idl_cubit.CubitHelper.unchecked_narrow(object);
    Map<Integer, Sample> slots = new HashMap<>();
    Crowd crowd = null;
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.trim().split(" +");
      int slot = Integer.parseInt(words[1]);
      switch (words[0]) {
        case "objects":
          while (known.size() < slot) {
            ttcp_sequence[] some = directory.references(known.size(), Math.min(1000, slot - known.size()));
            if (some.length == 0) throw new Exception("there are not so many objects");
            known.addAll(Arrays.asList(some));
          }
          break;
        case "calls":
          slots.put(slot, callsOf(orb, words));
          break;
        case "cubit": {
          boolean oneway = words[2].equals("oneway");
          Sample once = cubeOf(remote, oneway, words[3], Integer.parseInt(words[4]));
          int oneways = Integer.parseInt(words[5]);
          idl_cubit.Cubit to = remote;
          slots.put(slot, !oneway ? once : () -> {
            for (int number = 0; number < oneways; number++) once.once();
            to.nothing();
          });
          break;
        }
        case "collocated": {
          if (local == null) {
            POA poa = POAHelper.narrow(orb.resolve_initial_references("RootPOA"));
            poa.the_POAManager().activate();
            local = idl_cubit.CubitHelper.narrow(poa.id_to_reference(poa.activate_object(new Cubit())));
          }
          Sample once = cubeOf(local, false, words[2], Integer.parseInt(words[3]));
          int batch = Integer.parseInt(words[4]);
          slots.put(slot, () -> {
            for (int number = 0; number < batch; number++) once.once();
          });
          break;
        }
        case "threads":
          if (crowd != null) crowd.close();
          crowd = new Crowd(remote, Integer.parseInt(words[2]), Integer.parseInt(words[3]));
          slots.put(slot, crowd);
          break;
        case "each": {
          Sample sample = slots.get(slot);
          long[] nanos = new long[Integer.parseInt(words[2])];
          long before = System.nanoTime();
          for (int place = 0; place < nanos.length; place++) {
            sample.once();
            long after = System.nanoTime();
            nanos[place] = after - before;
            before = after;
          }
          StringBuilder answer = new StringBuilder();
          for (long each : nanos) answer.append(each).append(' ');
          System.out.println(answer);
          continue;
        }
        default:
          throw new Exception("no command is called " + words[0]);
      }
      System.out.println("ok");
    }
  }

  public static void main(String[] arguments) {
    try {
      Properties properties = new Properties();
      properties.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
      properties.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
      properties.setProperty("jacorb.orb.print_version", "off");
      properties.setProperty("jacorb.log.default.verbosity", "0");
      properties.setProperty("jacorb.retries", "0");
      properties.setProperty("OAIAddr", "127.0.0.1");
      properties.setProperty("jacorb.poa.thread_pool_max", "100");
      // Lets many oneways wait in the socket instead of being refused.
      properties.setProperty("jacorb.poa.queue_wait", "on");
      properties.setProperty("jacorb.connection.server.max_receptor_threads", "20000");
      // JacORB's singleton ORB reads its class from the system properties only.
      System.setProperty("org.omg.CORBA.ORBClass", "org.jacorb.orb.ORB");
      System.setProperty("org.omg.CORBA.ORBSingletonClass", "org.jacorb.orb.ORBSingleton");
      ORB orb = ORB.init(new String[0], properties);
      if (arguments.length == 2 && arguments[0].equals("server")) serve(orb, arguments[1]);
      else if (arguments.length == 3 && arguments[0].equals("client")) call(orb, arguments[1], arguments[2]);
      else throw new Exception("usage: server SUITE | client SUITE REFERENCE");
      System.exit(0);
    } catch (Exception e) {
      System.err.println("Calls: " + e);
      System.exit(1);
    }
  }
}
