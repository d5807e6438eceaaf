import { createAdminApiDocument } from '../../src/auth/index.ts'
import { formatCommandHelp } from '../../src/cli/command-line.ts'
import { commandNames, loadCommand } from '../../src/cli/commands/table.ts'
import { HOW } from '../../src/core/index.ts'
import { createOpenApiDocument } from '../../src/session/index.ts'
import { formatApiReference } from './api-reference.ts'
import type { Sources } from './modules.ts'
import { fillCounts } from './proof.ts'
import { fillReasons } from './reasons-reference.ts'
import { settingsReference } from './settings-reference.ts'

/** Written by hand, apart from its counts and versions. */
const PROOF = 'docs/proof.md'

/** Written by hand, apart from the reasons of the auth server. */
const ERRORS = 'docs/errors.md'

/** The pages that are generated, by their path, with the text that they should have. */
export async function generatePages(sources: Sources): Promise<ReadonlyMap<string, string>> {
  return new Map([
    [PROOF, fillCounts(sources.get(PROOF) ?? '', sources)],
    [ERRORS, fillReasons(sources.get(ERRORS) ?? '')],
    ['docs/settings.md', settingsReference()],
    ['docs/cli.md', await renderCliReference()],
    [
      'docs/session-api.md',
      formatApiReference(
        createOpenApiDocument('http://localhost:8081', 'session'),
        'The app server describes it at `/docs`, and as OpenAPI at `/api/openapi.json`. [The guide](how-to/session-pages.md) has a page that uses it.',
      ),
    ],
    [
      'docs/administration-api.md',
      formatApiReference(
        createAdminApiDocument('http://localhost:9000'),
        'The auth server describes it as OpenAPI at `/admin/api/openapi.json`. [The guide](how-to/administer-by-api.md) has examples.',
      ),
    ],
  ])
}

/** `docs/cli.md`: the help text of every command, as a Markdown page. */
async function renderCliReference(): Promise<string> {
  const commands = await Promise.all(commandNames.map(loadCommand))
  const list = commands.map(
    ({ name, summary }) => `| [\`${name}\`](#${name.replaceAll(' ', '-')}) | ${summary} |`,
  )
  const sections = commands.map(
    command => `## ${command.name}\n\n\`\`\`text\n${formatCommandHelp(command)}\`\`\`\n`,
  )
  return `${INTRODUCTION}
| command | purpose |
|---|---|
${list.join('\n')}

${sections.join('\n').replaceAll(HOW, 'sallyport')}`
}

const INTRODUCTION = `# Command line

<!-- Generated from the help texts in src/cli/commands by \`npm run reference\`. Change them there. -->

Run a command where the settings and the data folder are. In a clone, write \`npm run -s sallyport --\` instead of \`sallyport\`.

\`\`\`sh
sallyport <command> [options]
\`\`\`

Every command prints its help text with \`--help\`. Commands read the same [settings](settings.md) as the servers. They work on the
database, not through the servers, so you can run them while the servers run and while they are stopped. Changes take effect in
running servers within 5 seconds. The [audit trail](audit.md) records every command that changes data.

| exit code | meaning |
|---|---|
| 0 | success |
| 1 | the command failed; standard error has the reason |
| 2 | the command line is wrong: an unknown command or option, or a missing or invalid value |
| 3 | \`explain\`: the request would be refused; \`upgrade check\`: a stop is needed |
| 4 | \`upgrade check\`: refused |
`
