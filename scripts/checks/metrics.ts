import type { Sources } from './modules.ts'

/** Metrics of the servers that the page does not name, and others that it names. */
export function findMetricFaults(page: string, text: string, sources: Sources): readonly string[] {
  const defined = new Set(
    [...sources]
      .filter(([file]) => file.startsWith('src/') && !file.endsWith('.test.ts'))
      .flatMap(([, source]) => [...source.matchAll(/(?<!createTable\()'(sallyport_\w+)'/g)])
      .map(([, name = '']) => name),
  )
  const described = new Set([...text.matchAll(/`(sallyport_\w+)`/g)].map(([, name = '']) => name))
  return [
    ...[...defined.difference(described)].map(name => `${page}: does not describe ${name}`),
    ...[...described.difference(defined)].map(name => `${page}: describes ${name}, which no server has`),
  ]
}
