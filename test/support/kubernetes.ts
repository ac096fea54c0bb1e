/** What Kubernetes gives the pods beside the Services keyhole and keyhole-ops. */
export const kubernetes: Readonly<Record<string, string>> = {
  KEYHOLE_SERVICE_HOST: "10.96.0.7",
  KEYHOLE_SERVICE_PORT: "4100",
  KEYHOLE_SERVICE_PORT_HTTP: "4100",
  KEYHOLE_PORT: "tcp://10.96.0.7:4100",
  KEYHOLE_PORT_4100_TCP: "tcp://10.96.0.7:4100",
  KEYHOLE_PORT_4100_TCP_PROTO: "tcp",
  KEYHOLE_PORT_4100_TCP_PORT: "4100",
  KEYHOLE_PORT_4100_TCP_ADDR: "10.96.0.7",
  KEYHOLE_OPS_SERVICE_HOST: "10.96.0.8",
  KEYHOLE_OPS_SERVICE_PORT: "4101",
  KEYHOLE_OPS_PORT: "tcp://10.96.0.8:4101",
  KEYHOLE_OPS_PORT_4101_TCP: "tcp://10.96.0.8:4101",
};
