// Generates random trees, which are equal for equal seeds.

import { type CallTree, TreeBuilder } from "../../src/engine/tree";

/** Returns a generator of numbers from 0 up to a bound. */
export function randomNumbers(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** Returns a tree of functions from 1 on, each at most once under a caller. */
export function randomTree(seed: number, { nodes, functions }: { nodes: number; functions: number }): CallTree {
  const random = randomNumbers(seed);
  const builder = new TreeBuilder(false);
  for (let made = 0; made < nodes; made++) {
    const node = builder.child(random(builder.length), 1 + random(functions));
    builder.add(node, 1 + random(3), random(1000));
  }
  return builder.finish();
}
