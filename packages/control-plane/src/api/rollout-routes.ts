// Roll-outs over HTTP: where they stand, and a person's word to them.
import { fixedPart, type RolloutAction, rolloutActions, type RolloutView } from "@tulle/config/api";
import { rolloutEndpoints } from "@tulle/config/api";
import { type Asked, RolloutRefused } from "../rollouts/asked.ts";
import type { RolloutController } from "../rollouts/rollout-controller.ts";
import { ApiFailure } from "./api-failure.ts";
import { changeAuthor } from "./change-author.ts";
import type { ApiRequest, Handlers, JsonReply } from "./routes.ts";

type Rollouts = Pick<RolloutController, "act" | "view" | "views">;

export function rolloutRoutes(rollouts: Rollouts): Handlers<typeof rolloutEndpoints> {
  return {
    rollouts: () => ({ status: 200, json: rollouts.views() }),
    rollout: ({ path }) => {
      const [namespace, name, ...rest] = segments(path);
      if (rest.length > 0) throw new ApiFailure(404, `there is nothing at ${path}`);
      return reply(rollouts, namespace, name);
    },
    steerRollout: (request) => steer(rollouts, request),
  };
}

async function steer(rollouts: Rollouts, request: ApiRequest): Promise<JsonReply<RolloutView>> {
  const { path, query } = request;
  const [namespace = "", name = "", word, ...rest] = segments(path);
  const action = rolloutActions.find((each) => each === word);
  if (action === undefined || rest.length > 0)
    throw new ApiFailure(404, `a roll-out can be asked to ${rolloutActions.join(", ")}`);
  reply(rollouts, namespace, name);
  await act(rollouts, namespace, name, action, { by: changeAuthor(request), isFull: query.get("full") === "true" });
  return reply(rollouts, namespace, name);
}

async function act(rollouts: Rollouts, namespace: string, name: string, action: RolloutAction, asked: Asked) {
  try {
    await rollouts.act(namespace, name, action, asked);
  } catch (error) {
    throw error instanceof RolloutRefused ? new ApiFailure(409, error.message) : error;
  }
}

function reply(rollouts: Rollouts, namespace = "", name = ""): JsonReply<RolloutView> {
  const view = rollouts.view(namespace, name);
  if (view === undefined) throw new ApiFailure(404, `there is no Rollout ${name} in namespace ${namespace}`);
  return { status: 200, json: view };
}

function segments(path: string): string[] {
  try {
    return path.slice(fixedPart(rolloutEndpoints.rollout.path).length).split("/").map(decodeURIComponent);
  } catch {
    throw new ApiFailure(404, `there is nothing at ${path}`);
  }
}
