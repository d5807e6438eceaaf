import type { Sources } from './modules.ts'

/** Exported types that share a name: a reader must know which one is meant without looking at the imports. */
export function findTypeNameFaults(sources: Sources): readonly string[] {
  const exported = [...sources]
    .filter(([file]) => file.startsWith('src/') && !file.endsWith('.test.ts'))
    .flatMap(([file, text]) =>
      [...text.matchAll(/^export (?:declare )?(?:interface|type|(?:abstract )?class) (\w+)/gm)].map(
        ([, name = '']) => ({ name, file }),
      ),
    )
  return [...Map.groupBy(exported, ({ name }) => name)]
    .filter(([, same]) => same.length > 1)
    .map(([name, same]) => `${name}: exported by ${same.map(({ file }) => file).join(' and ')}`)
}
