/**
 * Orders things that refer to each other, by their numbers: each step holds the groups whose references lead only to
 * earlier steps or into the group itself. A group is one thing, or several that refer to each other in a circle.
 */
export function orderByReference(
  references: readonly (readonly number[])[],
): readonly (readonly ImportGroup[])[] {
  const steps: ImportGroup[][] = []
  const stepOf = new Int32Array(references.length)
  for (const members of findComponents(references)) {
    const targets = members.flatMap(member => references[member] ?? [])
    const inside = new Set(members)
    const step = targets.reduce(
      (last, it) => (inside.has(it) ? last : Math.max(last, (stepOf[it] ?? 0) + 1)),
      0,
    )
    for (const member of members) stepOf[member] = step
    steps[step] ??= []
    steps[step].push({ members, isCircle: targets.some(it => inside.has(it)) })
  }
  return steps
}

export interface ImportGroup {
  readonly members: readonly number[]
  /** Whether a member refers to a member. */
  readonly isCircle: boolean
}

/** Tarjan's strongly connected components, without recursion; what is referred to comes first. */
function findComponents(references: readonly (readonly number[])[]): readonly (readonly number[])[] {
  const components: number[][] = []
  const order = new Int32Array(references.length).fill(-1)
  const low = new Int32Array(references.length)
  const open: number[] = []
  const isOpen = new Uint8Array(references.length)
  let visited = 0

  function enter(node: number): { readonly node: number; next: number } {
    order[node] = low[node] = visited++
    open.push(node)
    isOpen[node] = 1
    return { node, next: 0 }
  }

  function lower(node: number, to: number | undefined): void {
    low[node] = Math.min(low[node] ?? 0, to ?? 0)
  }

  function close(node: number): void {
    const members = open.splice(open.lastIndexOf(node))
    for (const member of members) isOpen[member] = 0
    components.push(members)
  }

  for (const start of references.keys()) {
    if (order[start] !== -1) continue
    const path = [enter(start)]
    for (let at = path.at(-1); at; at = path.at(-1)) {
      const target = references[at.node]?.[at.next++]
      if (target !== undefined) {
        if (order[target] === -1) path.push(enter(target))
        else if (isOpen[target] === 1) lower(at.node, order[target])
        continue
      }
      path.pop()
      if (low[at.node] === order[at.node]) close(at.node)
      const above = path.at(-1)
      if (above) lower(above.node, low[at.node])
    }
  }
  return components
}
