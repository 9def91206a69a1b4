import java.io.*;
import java.util.*;
import org.omg.CORBA.portable.ValueFactory;
import org.jacorb.orb.CDROutputStream;
import org.jacorb.orb.CDRInputStream;

// Prints values as JacORB writes them, in the format of the golden files: each at offset 0 of a stream of its own.
// With an argument, reads what others have written, a line `order hex` each from standard input, and prints what
// JacORB makes of it; `few` does so without the truncatable types. values.idl is the one beside this file, without
// the box, which JacORB's compiler does not take.
//
//   java -cp "$JACORB" org.jacorb.idl.parser -d gen values.idl
//   javac -cp "$JACORB" -d out gen/*.java Values.java
//   java -cp "out:$JACORB" Values > values.hex
public class Values {
  static class ItemI extends Item { ItemI() {} ItemI(int n) { number = n; } }
  static class NamedI extends Named { NamedI() {} NamedI(int n, String s) { number = n; name = s; } }
  static class DeepI extends Deep { DeepI() {} DeepI(int n, String s) { number = n; name = s; numbers = new double[0]; items = new Item[0]; } }
  interface W { void write(CDROutputStream o); }
  static org.jacorb.orb.ORB orb;
  static void print(String label, W w) {
    try {
      CDROutputStream o = (CDROutputStream) orb.create_output_stream();
      w.write(o);
      byte[] b = o.getBufferCopy();
      StringBuilder s = new StringBuilder();
      for (int i = 0; i < b.length; i++) { s.append(String.format("%02x", b[i])); if (i % 32 == 31 && i + 1 < b.length) s.append("\n"); }
      System.out.println("> big " + label + "\n" + s);
    } catch (Throwable e) { System.err.println(label + ": " + e); e.printStackTrace(); }
  }
  static void item(String label, Item v) { print(label, o -> ItemHelper.write(o, v)); }
  static String describe(Item root) {
    List<Item> met = new ArrayList<>();
    StringBuilder out = new StringBuilder();
    number(met, root);
    for (int i = 0; i < met.size(); i++) {
      Item v = met.get(i);
      out.append(i > 0 ? "; " : "").append(v.number + " " + number(met, v.left) + " " + number(met, v.right));
      if (v instanceof Named) out.append(" " + ((Named) v).name + " " + number(met, ((Named) v).last));
      if (v instanceof Deep) { out.append(" " + ((Deep) v).numbers.length); for (Item x : ((Deep) v).items) out.append(" " + number(met, x)); }
    }
    return out.toString();
  }
  static String number(List<Item> met, Item v) {
    if (v == null) return "null";
    for (int i = 0; i < met.size(); i++) if (met.get(i) == v) return "#" + i;
    met.add(v); return "#" + (met.size() - 1);
  }
  public static void main(String[] args) throws Exception {
    orb = (org.jacorb.orb.ORB) org.omg.CORBA.ORB.init(args, null);
    boolean few = args.length > 0 && args[0].equals("few");
    orb.register_value_factory("IDL:Item:1.0", (ValueFactory) is -> is.read_value(new ItemI()));
    if (!few) {
      orb.register_value_factory("IDL:Named:1.0", (ValueFactory) is -> is.read_value(new NamedI()));
      orb.register_value_factory("IDL:Deep:1.0", (ValueFactory) is -> is.read_value(new DeepI()));
    }
    if (args.length > 0) {
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
      for (String line; (line = in.readLine()) != null; ) {
        String[] p = line.split(" ");
        byte[] b = new byte[p[1].length() / 2];
        for (int i = 0; i < b.length; i++) b[i] = (byte) Integer.parseInt(p[1].substring(2 * i, 2 * i + 2), 16);
        try {
          CDRInputStream is = new CDRInputStream(orb, b, p[0].equals("little"));
          Item v = ItemHelper.read(is);
          System.out.println(v == null ? "null" : describe(v));
        } catch (Throwable e) { System.out.println("EX " + e); }
      }
      return;
    }
    item("null", null);
    Item one = new ItemI(1);
    item("single", one);
    Item shared = new ItemI(2); shared.left = one; shared.right = one;
    item("shared", shared);
    Item self = new ItemI(3); self.left = self; self.right = self;
    item("cycle", self);
    print("parameters", o -> { ItemHelper.write(o, one); ItemHelper.write(o, shared); ItemHelper.write(o, one); });
    Item holder = new ItemI(4); holder.left = new NamedI(5, "five"); holder.right = new NamedI(6, "six");
    item("truncatable", holder);
    Named inner = new NamedI(8, "inner"), outer = new NamedI(7, "outer"), outermost = new NamedI(9, "outermost");
    outer.last = inner; outermost.last = outer;
    item("ends", outermost);
    Deep deep = new DeepI(10, "deep"); deep.left = one; deep.last = outer; deep.numbers = new double[]{0, 0.5, 1};
    deep.items = new Item[]{one, inner, null, deep};
    item("deep", deep);
    Deep large = new DeepI(14, "x".repeat(3000)); large.numbers = new double[1500];
    for (int i = 0; i < 1500; i++) large.numbers[i] = i;
    large.items = new Item[]{new NamedI(15, "after")};
    item("large", large);
  }
}
