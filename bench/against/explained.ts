import type { Compared } from './ratios.ts'

/** A ratio above this one needs an explanation in the CHANGELOG. */
export const MOST = 1.1

/**
 * The figures that are slower, as their interval shows, and that no line of the changes explains. Such a line begins with `Slower:` and names figures, or the
 * requests of several, in backticks: "- Slower: `refresh` takes 1.2 times the CPU time, because …".
 */
export function findUnexplained(compared: readonly Compared[], changes: string): readonly Compared[] {
  const explained = [...changes.matchAll(/^- Slower: (.*)$/gm)].flatMap(([, text = '']) =>
    [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
  )
  return compared.filter(
    ({ name, ratio, interval: [low] }) =>
      ratio > MOST && low > 1 && !explained.some(text => name === text || name.startsWith(`${text}: `)),
  )
}
