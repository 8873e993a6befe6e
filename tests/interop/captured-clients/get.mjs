// Asks for each address by Node's own fetch, and prints the answers.
for (const address of process.argv.slice(2)) process.stdout.write(await (await fetch(address)).text());
