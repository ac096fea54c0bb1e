/** What Kubernetes gives the pods beside a Service called keyhole. */
export const kubernetes: Readonly<Record<string, string>> = {
  KEYHOLE_SERVICE_HOST: "10.96.0.7",
  KEYHOLE_SERVICE_PORT: "4100",
  KEYHOLE_SERVICE_PORT_HTTP: "4100",
  KEYHOLE_PORT: "tcp://10.96.0.7:4100",
  KEYHOLE_PORT_4100_TCP: "tcp://10.96.0.7:4100",
  KEYHOLE_PORT_4100_TCP_PROTO: "tcp",
  KEYHOLE_PORT_4100_TCP_PORT: "4100",
  KEYHOLE_PORT_4100_TCP_ADDR: "10.96.0.7",
};
