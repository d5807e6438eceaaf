/**
 * `npm run api [-- --write]`: compares the public types of `sallyport/interceptor` with docs/internal/interceptor.api.md, so
 * that a change of the surface is seen in review. `--write` writes the page.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { Extractor, ExtractorConfig, ExtractorLogLevel } from '@microsoft/api-extractor'

const ROOT = resolve(import.meta.dirname, '..')
const PAGE = join(ROOT, 'docs/internal/interceptor.api.md')
const NAME = 'interceptor.api.md'

const folder = mkdtempSync(join(tmpdir(), 'sallyport-api-'))
try {
  process.exitCode = report()
} finally {
  rmSync(folder, { recursive: true })
}

function report(): number {
  const tsc = ['-p', 'tsconfig.build-node20.json', '--outDir', folder, '--emitDeclarationOnly']
  if (spawnSync('tsc', tsc, { cwd: ROOT, stdio: 'inherit' }).status !== 0) return 1
  const found = extract()
  if (process.argv.includes('--write')) writeFileSync(PAGE, found)
  else if (readFileSync(PAGE, 'utf8') !== found) {
    process.stderr.write('The public types changed: look at the difference after npm run api -- --write\n')
    return 1
  }
  return 0
}

function extract(): string {
  const silent = { default: { logLevel: ExtractorLogLevel.None } }
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'sallyport', type: 'module' }))
  const config = ExtractorConfig.prepare({
    configObject: {
      projectFolder: folder,
      mainEntryPointFilePath: join(folder, 'src/interceptor/index.d.ts'),
      compiler: {
        overrideTsconfig: {
          compilerOptions: {
            module: 'nodenext',
            target: 'es2022',
            lib: ['es2023'],
            strict: true,
            skipLibCheck: true,
            typeRoots: [join(ROOT, 'node_modules/@types')],
          },
          files: ['src/interceptor/index.d.ts'],
        },
      },
      apiReport: {
        enabled: true,
        includeForgottenExports: true,
        reportFileName: NAME,
        reportFolder: folder,
        reportTempFolder: folder,
      },
      docModel: { enabled: false },
      dtsRollup: { enabled: false },
      tsdocMetadata: { enabled: false },
      messages: {
        compilerMessageReporting: silent,
        extractorMessageReporting: silent,
        tsdocMessageReporting: silent,
      },
    },
    configObjectFullPath: undefined,
    packageJsonFullPath: join(folder, 'package.json'),
  })
  Extractor.invoke(config, {
    localBuild: true,
    messageCallback: message => Object.assign(message, { handled: true }),
  })
  return readFileSync(join(folder, NAME), 'utf8')
}
