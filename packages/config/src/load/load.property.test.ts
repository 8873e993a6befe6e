// What is written is what is read; ten times as many tries: load.property.long.test.ts.
import { loadProperties } from "../testing/load-properties.ts";

loadProperties(20);
