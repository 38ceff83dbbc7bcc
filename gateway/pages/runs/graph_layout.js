/**
 * Where a workflow's nodes stand: in ranks, each as far from the input as its longest way there, and
 * within a rank near the nodes that lead to it. Pure; positions count ranks and lanes from 0.
 */

/**
 * @param {{nodes: {id: string}[], edges: {from: string, to: string, handle?: string}[]}} definition acyclic
 * @returns {{places: Map<string, {rank: number, lane: number}>, ranks: number, lanes: number}}
 */
export function layOut({ nodes, edges }) {
  const ranks = ranksOf(nodes, edges);
  const byRank = [];
  for (const { id } of nodes) {
    const rank = ranks.get(id) ?? 0;
    byRank[rank] ??= [];
    byRank[rank].push(id);
  }
  const lanes = new Map();
  for (const ids of byRank) placeRank(ids ?? [], edges, lanes);
  const lowest = Math.min(0, ...lanes.values());
  const places = new Map([...lanes].map(([id, lane]) => [id, { rank: ranks.get(id) ?? 0, lane: lane - lowest }]));
  return { places, ranks: byRank.length, lanes: Math.max(0, ...lanes.values()) - lowest + 1 };
}

/** Longest distance from a node that nothing leads to. */
function ranksOf(nodes, edges) {
  const ranks = new Map(nodes.map(({ id }) => [id, 0]));
  // Without a cycle no way is longer than there are nodes.
  for (let round = 0; round < nodes.length; round += 1) {
    let changed = false;
    for (const { from, to } of edges) {
      const rank = (ranks.get(from) ?? 0) + 1;
      if (rank <= (ranks.get(to) ?? 0)) continue;
      ranks.set(to, rank);
      changed = true;
    }
    if (!changed) break;
  }
  return ranks;
}

/** Each node wishes to stand at its parents' mean, in the order of their edges; neighbours keep a lane's distance. */
function placeRank(ids, edges, lanes) {
  const wishes = ids.map((id) => {
    const before = edges.flatMap((edge, order) =>
      edge.to === id && lanes.has(edge.from) ? [{ lane: lanes.get(edge.from), order }] : [],
    );
    const mean = (pick) => before.reduce((sum, one) => sum + pick(one), 0) / (before.length || 1);
    return { id, wish: mean(({ lane }) => lane), order: mean(({ order }) => order) };
  });
  wishes.sort((a, b) => a.wish - b.wish || a.order - b.order);
  let next = Number.NEGATIVE_INFINITY;
  const placed = wishes.map(({ id, wish }) => {
    const lane = Math.max(wish, next);
    next = lane + 1;
    return { id, lane, wish };
  });
  // The row as a whole moves back to where its nodes wished to be.
  const shift = placed.reduce((sum, { lane, wish }) => sum + wish - lane, 0) / (placed.length || 1);
  for (const { id, lane } of placed) lanes.set(id, lane + shift);
}
