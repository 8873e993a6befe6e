// The catalog's answers by HTTP: items as JSON, prices that can be changed, and a fault switch that makes a share of
// the requests fail.
import type { Handler } from "../serve.ts";
import { methodIs, pathOf, readBody, sendJson, sendText } from "../serve.ts";
import type { Stock } from "./stock.ts";

const maxBodyBytes = 1024;

export function createCatalog(stock: Stock): Handler {
  return async (request, response) => {
    const path = pathOf(request);
    if (path === "/health") return sendText(response, 200, "ok\n");
    if (path === "/blowup") {
      if (!methodIs(request, response, "POST")) return;
      const rule = parseFaultRule(await readBody(request, maxBodyBytes));
      if (typeof rule === "string") return sendText(response, 400, `${rule}\n`);
      stock.faultPercentage = rule.active ? rule.percentage : 0;
      const text = rule.active ? `blowups on: ${rule.percentage} % of requests answer 500` : "blowups off";
      return sendText(response, 200, `${text}\n`);
    }
    if (stock.fails()) return sendJson(response, 500, { error: "blowup" });
    if (path === "/items") {
      if (methodIs(request, response, "GET")) sendJson(response, 200, stock.items);
      return;
    }
    const id = /^\/items\/([^/]+)$/.exec(path ?? "")?.[1];
    if (id === undefined) return sendJson(response, 404, { error: `no such path: ${path ?? request.url}` });
    if (!methodIs(request, response, "GET", "PUT")) return;
    const item = stock.item(id);
    if (item === undefined) return sendJson(response, 404, { error: `no item has the id ${id}` });
    if (request.method === "GET" || request.method === "HEAD") return sendJson(response, 200, item);
    const price = parsePrice(await readBody(request, maxBodyBytes));
    if (price === undefined) return sendJson(response, 400, { error: 'expected {"price": "12.50"}' });
    sendJson(response, 200, stock.setPrice(item.id, price));
  };
}

/** Of the body of `PUT /items/<id>`; undefined when there is none. */
function parsePrice(body: string | undefined): string | undefined {
  try {
    const { price } = JSON.parse(body ?? "") as { price?: unknown };
    return typeof price === "string" && /^\d{1,7}\.\d\d$/.test(price) ? price : undefined;
  } catch {
    return undefined;
  }
}

interface FaultRule {
  readonly active: boolean;
  readonly percentage: number;
}

/** The body of `POST /blowup`, or what is wrong with it. */
function parseFaultRule(body: string | undefined): FaultRule | string {
  if (body === undefined) return `the body is longer than ${maxBodyBytes} bytes`;
  let rule: unknown;
  try {
    rule = JSON.parse(body);
  } catch {
    return 'the body is not JSON; expected {"active": true, "type": "500", "percentage": 50}';
  }
  if (typeof rule !== "object" || rule === null || Array.isArray(rule)) return "the body is not a JSON object";
  const { active, type, percentage = 100 } = rule as Record<string, unknown>;
  if (typeof active !== "boolean") return '"active" must be true or false';
  if (type !== "500" && (active || type !== undefined)) return '"type" must be "500"';
  if (!Number.isInteger(percentage) || (percentage as number) < 0 || (percentage as number) > 100) {
    return '"percentage" must be a whole number from 0 to 100';
  }
  return { active, percentage: percentage as number };
}
