// What is written is what is read, and no text makes loading throw, tried many times.
import { loadProperties } from "../testing/load-properties.ts";

loadProperties(200);
