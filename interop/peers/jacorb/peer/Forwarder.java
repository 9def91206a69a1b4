package peer;

import java.nio.charset.StandardCharsets;
import org.omg.CORBA.LocalObject;
import org.omg.PortableInterceptor.ForwardRequest;
import org.omg.PortableInterceptor.ORBInitInfo;
import org.omg.PortableInterceptor.ORBInitInfoPackage.DuplicateName;
import org.omg.PortableInterceptor.ORBInitializer;
import org.omg.PortableInterceptor.ServerRequestInfo;
import org.omg.PortableInterceptor.ServerRequestInterceptor;

/**
 * Forwards every request whose object id is a stringified reference to that reference.
 *
 * An interceptor, because JacORB's servant managers cannot forward: a thread of the adapter dies of a BAD_PARAM, and
 * the client gets no reply.
 */
public final class Forwarder extends LocalObject implements ORBInitializer, ServerRequestInterceptor {
    private static org.omg.CORBA.ORB orb;

    static void use(org.omg.CORBA.ORB to) { orb = to; }

    public void pre_init(ORBInitInfo info) {}

    public void post_init(ORBInitInfo info) {
        try {
            info.add_server_request_interceptor(this);
        } catch (DuplicateName e) {
            throw new org.omg.CORBA.INITIALIZE(e.toString());
        }
    }

    public String name() { return "forwarder"; }
    public void destroy() {}
    public void receive_request_service_contexts(ServerRequestInfo info) {}

    public void receive_request(ServerRequestInfo info) throws ForwardRequest {
        String id = new String(info.object_id(), StandardCharsets.ISO_8859_1);
        if (id.startsWith("IOR:")) throw new ForwardRequest(orb.string_to_object(id));
    }

    public void send_reply(ServerRequestInfo info) {}
    public void send_exception(ServerRequestInfo info) {}
    public void send_other(ServerRequestInfo info) {}
}
