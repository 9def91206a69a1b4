package peer;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.jacorb.orb.factory.ServerSocketFactory;

/**
 * A listener that publishes a port without a listener, so that servers reach the client over its own connection only.
 *
 * JacORB can publish another address than its own (jacorb.ior_proxy_host), but tells servers the true one.
 */
public final class DeadEnd implements ServerSocketFactory {
    public ServerSocket createServerSocket(int port) throws IOException { return createServerSocket(port, 0, null); }
    public ServerSocket createServerSocket(int port, int backlog) throws IOException { return createServerSocket(port, backlog, null); }

    public ServerSocket createServerSocket(int port, int backlog, InetAddress address) throws IOException {
        int dead;
        try (ServerSocket free = new ServerSocket(0, backlog, address)) {
            dead = free.getLocalPort();
        }
        return new ServerSocket(port, backlog, address) {
            @Override
            public int getLocalPort() { return dead; }
        };
    }
}
